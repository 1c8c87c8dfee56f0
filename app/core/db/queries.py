"""Get, lock, update and delete one row, in the current tenant scope.

Rows are immutable: :func:`update_row` returns a new row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar
from uuid import UUID

from psycopg2.errors import UniqueViolation
from sqlalchemy import ColumnElement, Table, bindparam, delete, func, select, update

from app.core.clock import utcnow
from app.core.db.models import Row
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.transactions import RowChanged, current_transaction
from app.core.errors import Conflict, NotFound, PreconditionFailed
from app.core.json_text import differs
from app.extensions import Model

R = TypeVar("R", bound=Row)
M = TypeVar("M", bound=Model)

CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
Conflicts = Mapping[str, type[Conflict]]


@dataclass(frozen=True)
class Change:
    """The old and the new value of each field of a row that a change has modified."""

    before: dict[str, Any]
    after: dict[str, Any]

    def part(self, names: Iterable[str]) -> Change:
        """The Change reduced to the fields ``names``; fields that did not change are left out."""
        shown = [name for name in names if name in self.after]
        return Change(
            {name: self.before[name] for name in shown}, {name: self.after[name] for name in shown}
        )


def get_row(model: type[R], row_id: UUID | str) -> R:
    """The row. Raises NotFound if the scope has no such row, or the id is not a UUID."""
    row: R = _found(model, row_id, "get")
    return row


def get_with(
    model: type[R], row_id: UUID | str, *columns: ColumnElement[Any]
) -> tuple[R, Sequence[Any]]:
    """As :func:`get_row`, with further ``columns``. Build them once, at import."""
    found = _found(model, row_id, "get", *columns)
    return found[0], found[1:]


def get_where(model: type[M], **equal: object) -> M:
    """The row that :func:`find_row` finds. Raises NotFound if there is none."""
    row: M = _select(model, "find", tuple(equal)).get(model, **equal)
    return row


def find_row(model: type[M], **equal: object) -> M | None:
    """The row whose columns equal these values, or None; the one with the lowest primary key."""
    row: M | None = _select(model, "find", tuple(equal)).first(**equal)
    return row


def find_locked(model: type[M], **equal: object) -> M | None:
    """The row that :func:`find_row` finds, locked until the transaction ends."""
    row: M | None = _select(model, "lock", tuple(equal)).first(**equal)
    return row


def count_where(model: type[Model], **equal: object) -> int:
    """How many rows have columns that equal these values."""
    count: int = _count(model.__table__, tuple(equal)).scalar(**equal)
    return count


def lock_row(model: type[R], row_id: UUID | str) -> R:
    """Read the row that this request will change, and lock it until the transaction ends.

    Raises NotFound, and PreconditionFailed if ``If-Match`` names another version.
    """
    row: R = _found(model, row_id, "lock")
    check_precondition(row)
    return row


def lock_with(
    model: type[R], row_id: UUID | str, *columns: ColumnElement[Any]
) -> tuple[R, Sequence[Any]]:
    """Lock the row, and read further ``columns`` in the same statement.

    Raises NotFound. The caller must call :func:`check_precondition` itself, because another refusal
    may take precedence. Build the columns once, at import.
    """
    found = _found(model, row_id, "lock", *columns)
    return (found[0], found[1:]) if columns else (found, ())


def check_precondition(row: Any | None) -> None:
    """Raise PreconditionFailed if the request has an ``If-Match`` without this row's version.

    No version matches a row that is missing.
    """
    tags = current_transaction().precondition
    if tags is not None and (row is None or not tags.contains(str(row.version))):
        raise PreconditionFailed


def update_row(
    model: type[R],
    row: R,
    values: Mapping[str, object],
    *,
    actor_id: str | None = None,
    also: Mapping[str, object] | None = None,
    conflicts: Conflicts | None = None,
) -> tuple[R, Change | None]:
    """Set the fields that differ, and return the new row and the Change.

    If no field differs, nothing is written, and None is returned in place of the Change. Otherwise
    the UPDATE also sets ``updated_at``, ``version``, the fields in ``also`` and, with ``actor_id``,
    ``updated_by_user_id`` if the model has it. The Change contains none of these. The new row is
    built from the given values, because PostgreSQL stores them unchanged. Raises RowChanged if
    another transaction has changed the row since it was read. A further attempt may succeed.
    """
    change = difference(row, values)
    if change is None:
        return row, None
    written = {**change.after, **(also or {}), **stamp(model, actor_id), "version": row.version + 1}
    with raising(conflicts):
        count = update_where(model, {**_key(model, row), "version": row.version}, written)
    if count != 1:
        raise RowChanged(model.__tablename__)
    return row._replace(**written), change


def difference(row: Row, values: Mapping[str, object]) -> Change | None:
    """The Change that results from setting ``values`` in a row; None if no field differs."""
    after = {name: new for name, new in values.items() if differs(getattr(row, name), new)}
    return Change({name: getattr(row, name) for name in after}, after) if after else None


def stamp(model: type[Row], actor_id: str | None) -> dict[str, object]:
    """The values that every change by this actor sets, in addition to ``version``."""
    values: dict[str, object] = {"updated_at": utcnow()}
    if actor_id is not None and hasattr(model, "updated_by_user_id"):
        values["updated_by_user_id"] = actor_id
    return values


def delete_row(model: type[R], row: R) -> None:
    """Delete a row that is locked. Raises RowChanged if the row does not exist."""
    if delete_where(model, **_key(model, row)) != 1:
        raise RowChanged(model.__tablename__)


def update_where(
    model: type[Model], equal: Mapping[str, object], values: Mapping[str, object]
) -> int:
    """Set only ``values``, in the rows whose columns equal ``equal``; returns their number."""
    old = {f"old_{name}": value for name, value in equal.items()}
    return _update(model.__table__, tuple(equal), tuple(values)).execute(**old, **values)


def delete_where(model: type[Model], **equal: object) -> int:
    """Delete the rows whose columns equal these values; returns their number."""
    return _delete(model.__table__, tuple(equal)).execute(**equal)


def parse_id(row_id: UUID | str, of: type[Model] | str) -> UUID:
    """An id from a path, as UUID. Raises the NotFound ``of`` this model if it is not a UUID."""
    if isinstance(row_id, UUID):
        return row_id
    if not CANONICAL.fullmatch(row_id):
        raise NotFound.of(of)
    return UUID(row_id)


def id_or_none(text: str) -> UUID | None:
    """The text as an id; None if it is not a UUID with hyphens."""
    return UUID(text) if CANONICAL.fullmatch(text) else None


def visible_id(tenant_id: UUID | str) -> UUID:
    """The id of a tenant. Raises NotFound if the scope is another tenant's."""
    wanted = parse_id(tenant_id, "tenant")
    own = current_scope().tenant_id
    if own is not None and wanted != own:
        raise NotFound.of("tenant")
    return wanted


def _found(model: type[Row], row_id: UUID | str, verb: str, *columns: ColumnElement[Any]) -> Any:
    values = {"id": parse_id(row_id, model)}
    tenant_id = current_scope().tenant_id
    if tenant_id is not None and "tenant_id" in model.__table__.primary_key.columns:
        values["tenant_id"] = tenant_id
    return _select(model, verb, tuple(values), *columns).get(model, **values)


@cache
def _select(
    model: type[Model], verb: str, names: tuple[str, ...], *columns: ColumnElement[Any]
) -> Statement[Any]:
    """The statement that gets, locks or finds a row by the values of the columns ``names``."""
    table = model.__table__
    clause = select(model, *columns).where(*(table.c[name] == bindparam(name) for name in names))
    if verb == "lock":
        clause = clause.with_for_update(of=model)
    elif verb == "find":
        clause = clause.order_by(*table.primary_key).limit(1)
    return Statement(f"{table.name}.{verb}", clause)


@cache
def _count(table: Table, names: tuple[str, ...]) -> Statement:
    clause = select(func.count()).select_from(table)
    same = (table.c[name] == bindparam(name) for name in names)
    return Statement(f"{table.name}.count", clause.where(*same))


@lru_cache(maxsize=500)
def _update(table: Table, equal: tuple[str, ...], names: tuple[str, ...]) -> Statement:
    """One statement per set of columns. Clients determine the sets, so the cache is bounded."""
    clause = update(table).where(*(table.c[name] == bindparam(f"old_{name}") for name in equal))
    values = {name: bindparam(name, type_=table.c[name].type) for name in names}
    return Statement(f"{table.name}.update", clause.values(values))


@cache
def _delete(table: Table, names: tuple[str, ...]) -> Statement:
    clause = delete(table).where(*(table.c[name] == bindparam(name) for name in names))
    return Statement(f"{table.name}.delete", clause)


def _key(model: type[Row], row: Row) -> dict[str, object]:
    return {column.name: getattr(row, column.name) for column in model.__table__.primary_key}


@contextmanager
def raising(conflicts: Conflicts | None) -> Iterator[None]:
    """If the block violates a unique constraint named in ``conflicts``, raise the error for it."""
    try:
        yield
    except UniqueViolation as fault:
        name = fault.diag.constraint_name
        if name is None or not conflicts or name not in conflicts:
            raise
        raise conflicts[name] from None
