"""What differs between a tenant's rows and those of an earlier moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from app.audit.models import ERASED
from app.core.db.queries import difference
from app.core.db.statements import Statement
from app.rewinds.kinds import KINDS, LEFT

CREATED, UPDATED, REMOVED = "created", "updated", "removed"
FIRST = str(UUID(int=0))  # before all ids
RANGE = ("tenant_id", "to_position", "to_time", "position", "only")  # what a rewind takes back
SET_MOMENT = Statement(
    "rewinds.set_moment", "SELECT set_config('app.as_of_position', :position, true)"
)
# A row that has not changed since the moment cannot differ from what it was.
FIND_CHANGED = {
    False: Statement(
        "rewinds.find_changed",
        """
        WITH changed AS MATERIALIZED (
            SELECT DISTINCT row_id FROM audit_positions
            WHERE tenant_id = :tenant_id AND target_type = :target_type
                AND position > :to_position AND position <= :position
                AND row_id > CAST(:after AS uuid)
                AND (CAST(:only AS text[]) IS NULL OR row_id = ANY (CAST(:only AS uuid[])))
            ORDER BY row_id LIMIT :limit
        )
        SELECT row_id, row_id AS place, EXISTS (
            SELECT FROM past.trail p
            WHERE p.tenant_id = :tenant_id AND p.target_type = :target_type AND p.row_id = c.row_id
                AND p.position > :to_position AND p.position <= :position
                AND p.action = :target_type || '.created'
        ) AS is_new FROM changed c ORDER BY row_id
        """,
    ),
    True: Statement(
        "rewinds.find_changed_resources",
        "SELECT * FROM past.changed_resources(:tenant_id, :to_position, CAST(:to_time AS timestamptz),"
        " :position, CAST(:after AS bigint), :limit) WHERE CAST(:only AS text[]) IS NULL",
    ),
}


class Difference(NamedTuple):
    """What has to be done (``action``) so that a row is what it was, with the values to set.

    ``changed`` is its row of :func:`find_changed`; ``left`` has codes of :data:`LEFT` for what stays
    as it is.
    """

    kind: str
    changed: Any
    now: Any
    past: Any
    action: str = ""
    values: Mapping[str, Any] = {}
    left: Sequence[str] = ()


def left_out(one: Difference, code: str, detail: str = "") -> dict[str, object]:
    """A row that stays as it is, at least in part, as answers have it."""
    detail = detail or LEFT[code]
    return {"kind": one.kind, "id": str(one.changed.row_id), "code": code, "detail": detail}


def find_changed(kind: str, rewind: Any, after: object, limit: int) -> list[Any]:
    """The next rows whose changes the rewind takes back: ``row_id``, ``is_new``.

    They come after the ``place`` of a row, None for the first ones. There may be more than ``limit``.
    """
    how, place = KINDS[kind], {name: getattr(rewind, name) for name in RANGE}
    place |= {"target_type": how.target_type, "after": after or (0 if how.has_names else FIRST)}
    return FIND_CHANGED[how.has_names].all(**place, limit=limit)


def compare(kind: str, rewind: Any, changed: Sequence[Any]) -> Iterator[Difference]:
    """The rows of :func:`find_changed` that are not what they were. Nothing is locked."""
    SET_MOMENT.execute(position=str(rewind.to_position))
    place = {"tenant_id": rewind.tenant_id, "ids": [row.row_id for row in changed]}
    id_of = KINDS[kind].id_of
    past, now = ({id_of(row): row for row in each.all(**place)} for each in _statements(kind))
    for row in changed:
        one = difference_of(kind, row, now.get(row.row_id), past.get(row.row_id))
        if one.action or one.left:
            yield one


def difference_of(kind: str, changed: Any, now: Any, past: Any) -> Difference:
    """What differs between a row now and then; each is None where there is none."""
    how, same = KINDS[kind], Difference(kind, changed, now, past)
    if past is None and (now is None or how.is_removed(now)):
        return same
    if now is None:
        return same._replace(action=CREATED) if how.create else same._replace(left=["erased"])
    left_of = how.left_of(now)
    if past is None:
        code = left_of.get("id", "" if changed.is_new else "not_recorded")
        return same._replace(left=[code]) if code else same._replace(action=REMOVED)
    change = difference(now, {name: getattr(past, name) for name in how.fields})
    after = change.after if change else {}
    codes = {
        name: left_of.get(name, "erased" if ERASED in str(value) else "")
        for name, value in after.items()
    }
    values = {name: after[name] for name, code in codes.items() if not code}
    left = sorted({*codes.values()} - {""})
    return same._replace(action=UPDATED if values else "", values=values, left=left)


@cache
def _statements(kind: str) -> list[Statement]:
    """Read the rows of then, and those of now, by ``tenant_id`` and ``ids``."""
    table = KINDS[kind].model.__table__
    owner = "tenant_id" if "tenant_id" in table.columns else "id"
    past, ids = f"past.{table}", "id = ANY (CAST(:ids AS uuid[]))"
    if KINDS[kind].has_names:
        past = "past.resources_named(:tenant_id, CAST(:ids AS text[]))"
        ids = (
            "(type, id) IN (SELECT split_part(name, '/', 1), substr(name, strpos(name, '/') + 1)"
            " FROM unnest(CAST(:ids AS text[])) name)"
        )
    return [
        Statement(
            f"rewinds.read_{schema}_{table}",
            f"SELECT * FROM {rows} WHERE {owner} = :tenant_id AND {ids}",  # noqa: S608 - no input
        )
        for schema, rows in (("past", past), ("public", f"public.{table}"))
    ]
