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
FIRST = UUID(int=0)
RANGE = ("tenant_id", "to_position", "position", "only")  # of a rewind: what it takes back
SET_MOMENT = Statement(
    "rewinds.set_moment", "SELECT set_config('app.as_of_position', :position, true)"
)
# A row that has not changed since the moment cannot differ from what it was.
FIND_CHANGED = Statement(
    "rewinds.find_changed",
    """
    WITH changed AS MATERIALIZED (
        SELECT DISTINCT row_id FROM audit_positions
        WHERE tenant_id = :tenant_id AND target_type = :target_type
            AND position > :to_position AND position <= :position AND row_id > :after
            AND (CAST(:only AS text[]) IS NULL OR row_id = ANY (CAST(:only AS text[])::uuid[]))
        ORDER BY row_id LIMIT :limit
    )
    SELECT row_id, EXISTS (
        SELECT FROM audit_positions p
        JOIN audit_events a ON a.tenant_id = p.tenant_id AND a.id = p.id
        WHERE p.tenant_id = :tenant_id AND p.target_type = :target_type AND p.row_id = c.row_id
            AND p.position > :to_position AND p.position <= :position
            AND a.action = :target_type || '.created'
    ) AS is_new FROM changed c ORDER BY row_id
    """,
)


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


def find_changed(kind: str, rewind: Any, after: UUID, limit: int) -> list[Any]:
    """The next rows whose changes the rewind takes back, by id: ``row_id``, ``is_new``."""
    place = {name: getattr(rewind, name) for name in RANGE}
    types = {"target_type": KINDS[kind].target_type}
    return FIND_CHANGED.all(**place, **types, after=after, limit=limit)


def compare(kind: str, rewind: Any, changed: Sequence[Any]) -> Iterator[Difference]:
    """The rows of :func:`find_changed` that are not what they were. Nothing is locked."""
    SET_MOMENT.execute(position=str(rewind.to_position))
    place = {"tenant_id": rewind.tenant_id, "ids": [row.row_id for row in changed]}
    past, now = ({row.id: row for row in each.all(**place)} for each in _statements(kind))
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
    return [
        Statement(
            f"rewinds.read_{schema}_{table}",
            f"SELECT * FROM {schema}.{table} WHERE {owner} = :tenant_id"  # noqa: S608 - no input
            " AND id = ANY (CAST(:ids AS uuid[]))",
        )
        for schema in ("past", "public")
    ]
