"""Single rows: get, lock, insert, update and delete, inside the current tenant scope.

Rows are immutable; :func:`update_row` returns the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar, cast
from uuid import UUID

from psycopg2.errors import UniqueViolation
from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update

from app.core.clock import utcnow
from app.core.db.models import Attributed, Row, TenantRow
from app.core.db.statements import Statement, row_class
from app.core.db.tenancy import current_scope
from app.core.db.transactions import RowChanged, context
from app.core.errors import Conflict, NotFound, PreconditionFailed
from app.core.json_text import differs

R = TypeVar("R", bound=Row)
M = TypeVar("M")

CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
Conflicts = Mapping[str, type[Conflict]]
COLLECTED_ROWS = "collected_rows"


@dataclass(frozen=True)
class Change:
    """What a change did to a row: the old and the new value of each field that differs."""

    before: dict[str, Any]
    after: dict[str, Any]

    def part(self, names: Iterable[str]) -> Change:
        """The change of those of these fields that differ."""
        shown = [name for name in names if name in self.after]
        return Change(
            {name: self.before[name] for name in shown}, {name: self.after[name] for name in shown}
        )


def get_row(model: type[R], row_id: UUID | str) -> R:
    """The row; NotFound where the scope shows none, or the id is no UUID."""
    row: R = _found(model, row_id, lock=False)
    return row


def find_row(model: type[R], **equal: Any) -> R | None:
    """The row whose columns equal these values, or None; of several the first by primary key."""
    described: Any = model
    row: R | None = _find(described, tuple(equal)).first(**equal)
    return row


def lock_row(model: type[R], row_id: UUID | str) -> R:
    """The row that this request is about to change, locked until the transaction ends.

    Raises NotFound, and PreconditionFailed where the request's ``If-Match`` does not hold.
    """
    row: R = _found(model, row_id, lock=True)
    check_precondition(row)
    return row


def lock_with(
    model: type[R], row_id: UUID | str, *columns: ColumnElement[Any]
) -> tuple[R, Sequence[Any]]:
    """The locked row, and the values of further ``columns``, read in the same statement.

    Raises NotFound. The caller checks ``If-Match`` (:func:`check_precondition`), because it may
    have to refuse for another reason first. Build the columns once, at import.
    """
    found = _found(model, row_id, *columns, lock=True)
    return (found[0], found[1:]) if columns else (found, ())


def check_precondition(row: Any) -> None:
    """Raise PreconditionFailed where the request's ``If-Match`` does not name this version."""
    tags = context().get("if_match")
    if tags is not None and not tags.contains(str(row.version)):
        raise PreconditionFailed


def insert_row(
    model: type[M], values: Mapping[str, Any], *, conflicts: Conflicts | None = None
) -> M:
    """Insert a row and return it; columns that ``values`` lacks get the model's defaults.

    ``conflicts`` maps the names of unique constraints to errors. The violation of such a constraint
    raises its error, so only one of two simultaneous requests succeeds. Inside
    :func:`app.core.db.bulk.inserts_in_one_statement` the row is inserted later.
    """
    described: Any = model
    table = described.__table__
    unknown = values.keys() - table.columns.keys()
    if unknown:
        raise TypeError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    complete = {
        column.name: values[column.name] if column.name in values else _default(column)
        for column in table.columns
    }
    collected = context().get(COLLECTED_ROWS)
    if collected is not None:
        collected.setdefault((described,), []).append(complete)
    else:
        with _raising(conflicts):
            _insert(described).execute(**complete)
    made: M = _row_class(described)(**complete)
    return made


def insert_into(models: tuple[Any, ...], values: Mapping[str, Any]) -> None:
    """Insert one row into each table, by one statement.

    Columns of the same name have the same value; those that ``values`` lacks get their default.
    Inside :func:`app.core.db.bulk.inserts_in_one_statement` the rows are inserted later.
    """
    complete = dict(values)
    for model in models:
        for column in written_columns(model):
            if column.name not in complete:
                complete[column.name] = _default(column)
    collected = context().get(COLLECTED_ROWS)
    if collected is not None:
        collected.setdefault(models, []).append(complete)
    else:
        _insert(*models).execute(**complete)


@cache
def written_columns(model: Any) -> tuple[Any, ...]:
    """The columns that an INSERT writes: all but those that PostgreSQL numbers."""
    return tuple(column for column in model.__table__.columns if column.identity is None)


def update_row(
    model: type[R],
    row: R,
    values: Mapping[str, Any],
    *,
    actor_id: str | None = None,
    also: Mapping[str, Any] | None = None,
    conflicts: Conflicts | None = None,
) -> tuple[R, Change | None]:
    """Set the fields that differ, and return the new row and the Change.

    If no field differs, nothing is written and None is returned instead of the Change. Otherwise
    ``updated_at``, ``version`` and the fields in ``also`` are set too, and ``updated_by_user_id``
    where ``actor_id`` is given and the model has it; none of these is in the Change. ``row`` needs
    the key, the version and the fields in ``values``. The new row is built from the given values,
    because PostgreSQL stores them unchanged. Raises RowChanged if another transaction has changed
    the row since it was read; :func:`app.core.db.transactions.run` then tries again.
    """
    described: Any = model
    changed = {name: new for name, new in values.items() if differs(getattr(row, name), new)}
    if not changed:
        return row, None
    before = {name: getattr(row, name) for name in changed}
    written = {**changed, **(also or {}), "updated_at": utcnow(), "version": row.version + 1}
    if actor_id is not None and issubclass(model, Attributed):
        written["updated_by_user_id"] = actor_id
    place = {f"old_{name}": getattr(row, name) for name in _key(described)}
    with _raising(conflicts):
        count = _update(described, tuple(written)).execute(
            **written, **place, old_version=row.version
        )
    if count != 1:
        raise RowChanged(described.__table__.name)
    shown = {name: value for name, value in written.items() if hasattr(row, name)}
    return cast("Any", row)._replace(**shown), Change(before, changed)


def delete_row(model: type[R], row: R) -> None:
    """Delete a row that is locked; RowChanged if it is not there."""
    described: Any = model
    place = {f"old_{name}": getattr(row, name) for name in _key(described)}
    if _delete(described).execute(**place) != 1:
        raise RowChanged(described.__table__.name)


def parse_id(row_id: UUID | str) -> UUID:
    """The id in a path; NotFound for what is no UUID."""
    if isinstance(row_id, UUID):
        return row_id
    if not CANONICAL.fullmatch(row_id):
        raise NotFound
    return UUID(row_id)


def id_or_none(text: str) -> UUID | None:
    """The text as an id, or None if it is none."""
    return UUID(text) if CANONICAL.fullmatch(text) else None


def visible_id(tenant_id: UUID | str) -> UUID:
    """The id of a tenant; raises NotFound for another tenant than the scope's."""
    wanted = parse_id(tenant_id)
    own = current_scope().tenant_id
    if own is not None and wanted != own:
        raise NotFound
    return wanted


def _found(model: Any, row_id: UUID | str, *columns: ColumnElement[Any], lock: bool) -> Any:
    values = {"id": parse_id(row_id)}
    tenant_id = current_scope().tenant_id if issubclass(model, TenantRow) else None
    if tenant_id is not None:
        values["tenant_id"] = tenant_id
    found = _select(model, tenant_id is not None, *columns, lock=lock).first(**values)
    if found is None:
        raise NotFound
    return found


@cache
def _select(model: Any, of_tenant: bool, *columns: Any, lock: bool) -> Statement:
    clause = select(model, *columns).where(model.id == bindparam("id"))
    if of_tenant:
        clause = clause.where(model.tenant_id == bindparam("tenant_id"))
    if lock:
        return Statement(f"{model.__table__.name}.lock", clause.with_for_update(of=model))
    return Statement(f"{model.__table__.name}.get", clause)


@cache
def _find(model: Any, names: tuple[str, ...]) -> Statement:
    table = model.__table__
    clause = select(model).where(*(table.c[name] == bindparam(name) for name in names))
    return Statement(f"{table.name}.find", clause.order_by(*table.primary_key).limit(1))


@cache
def _insert(*models: Any) -> Statement:
    """INSERT into each table; columns of the same name share a parameter."""
    inserts = [
        insert(model.__table__)
        .values({c.name: bindparam(c.name, type_=c.type) for c in written_columns(model)})
        .inline()
        for model in models
    ]
    first, *others = inserts
    clause = first.add_cte(*(each.cte() for each in others))
    return Statement(f"{models[0].__table__.name}.insert", clause)


@lru_cache(maxsize=500)
def _update(model: Any, names: tuple[str, ...]) -> Statement:
    """One for each set of columns; a request chooses the set, so not all of them stay cached."""
    table = model.__table__
    clause = update(table).where(*_place(model), table.c.version == bindparam("old_version"))
    values = {name: bindparam(name, type_=table.c[name].type) for name in names}
    return Statement(f"{table.name}.update", clause.values(values))


@cache
def _delete(model: Any) -> Statement:
    table = model.__table__
    return Statement(f"{table.name}.delete", delete(table).where(*_place(model)))


def _place(model: Any) -> list[ColumnElement[bool]]:
    columns = model.__table__.columns
    return [columns[name] == bindparam(f"old_{name}") for name in _key(model)]


@cache
def _key(model: Any) -> tuple[str, ...]:
    return tuple(column.name for column in model.__table__.primary_key)


@cache
def _row_class(model: Any) -> Any:
    table = model.__table__
    return row_class(model.__name__, tuple(table.columns.keys()))


def _default(column: Any) -> Any:
    if column.default is None:
        return None
    return column.default.arg(None) if column.default.is_callable else column.default.arg


@contextmanager
def _raising(conflicts: Conflicts | None) -> Iterator[None]:
    """Raise the error that ``conflicts`` has for a unique constraint if the block violates it."""
    try:
        yield
    except UniqueViolation as fault:
        name = fault.diag.constraint_name
        if name is None or not conflicts or name not in conflicts:
            raise
        raise conflicts[name] from None
