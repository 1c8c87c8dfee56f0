"""Finding one row by its id, inside the current tenant scope."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Delete, Select, bindparam, delete, select
from sqlalchemy.exc import IntegrityError

from app.core.db import statements
from app.core.db.ahead import Ahead, First
from app.core.db.models import Row, TenantRow
from app.core.db.tenancy import current_scope
from app.core.errors import Conflict, NotFound
from app.core.http.etags import check_precondition

R = TypeVar("R", bound=Row)

CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def reading(model: Any) -> First:
    """What a view reads first that begins with :func:`get_row` of the id in its path."""
    return _first(model, lock=False)


def locking(model: Any, *beside: ColumnElement[Any]) -> First:
    """The same for :func:`lock_row` or, with columns ``beside`` the row, :func:`lock_with`."""
    return _first(model, *beside, lock=True)


def get_row(model: type[R], row_id: UUID | str) -> R:
    """The row, as it is now; raises NotFound where the scope shows none (or it is no UUID)."""
    row: R = _found(model, row_id, lock=False)[0]
    return row


def lock_row(model: type[R], row_id: UUID | str) -> R:
    """The row this request is about to change, locked until the transaction ends.

    Raises NotFound, and PreconditionFailed where the request's ``If-Match`` does not hold.
    Use it for the one row that the request names; lock others with a statement of your own.
    """
    row: R = _found(model, row_id, lock=True)[0]
    check_precondition(row)
    return row


def lock_with(
    model: type[R], row_id: UUID | str, *beside: ColumnElement[Any]
) -> tuple[R, Sequence[Any]]:
    """The row, locked, and the values of the columns ``beside`` it, read in the same statement.

    Raises NotFound. ``If-Match`` is left to the caller (:func:`check_precondition`), who may have
    to refuse for another reason first. Build the columns once, at import: the statement is kept.
    """
    row, *values = _found(model, row_id, *beside, lock=True)
    return row, values


def flush(conflicts: Mapping[str, Conflict]) -> None:
    """Send pending changes; a unique key named in ``conflicts`` that is taken raises its error.

    The keys are constraint names. The look at the data and the write are one step this way, so
    two requests at once cannot both pass.
    """
    try:
        statements.settle()
    except IntegrityError as fault:
        name = getattr(getattr(fault.orig, "diag", None), "constraint_name", None)
        if name is None or name not in conflicts:
            raise
        raise conflicts[name] from None


def remove(row: Row) -> None:
    """Delete a row that is locked; together with the next statement, or with the COMMIT."""
    model: Any = type(row)
    key = row.__table__.primary_key
    place = {column.name: getattr(row, column.name) for column in key}
    statements.write(_delete(model), place, changes_one=True)


def parse_id(row_id: UUID | str) -> UUID:
    """A path's id; whatever is no UUID is simply unknown: NotFound."""
    if isinstance(row_id, UUID):
        return row_id
    if not CANONICAL.fullmatch(row_id):
        raise NotFound
    return UUID(row_id)


def _first(model: Any, *beside: ColumnElement[Any], lock: bool) -> First:
    statement = _statement(model, True, *beside, lock=lock)
    attempt = statement.with_for_update(of=model, skip_locked=True) if lock else None

    def first(row_id: str) -> Ahead | None:
        is_id = CANONICAL.fullmatch(row_id)
        return Ahead(statement, {"id": UUID(row_id)}, attempt) if is_id else None

    return first


def _found(
    model: Any, row_id: UUID | str, *beside: ColumnElement[Any], lock: bool
) -> Sequence[Any]:
    values = _place(model, row_id)
    statement = _statement(model, "tenant_id" in values, *beside, lock=lock)
    found: Sequence[Any] | None = statements.first(statement, values, whole=not lock)
    if found is None:
        raise NotFound
    return found


def _place(model: Any, row_id: UUID | str) -> dict[str, UUID]:
    """The id, and in a tenant's scope the tenant, that a statement of :func:`_statement` names."""
    values = {"id": parse_id(row_id)}
    tenant_id = current_scope().tenant_id if issubclass(model, TenantRow) else None
    return values if tenant_id is None else {**values, "tenant_id": tenant_id}


@cache
def _statement(model: Any, of_tenant: bool, *beside: Any, lock: bool) -> Select[Any]:
    statement = select(model, *beside).where(model.id == bindparam("id"))
    if of_tenant:
        statement = statement.where(model.tenant_id == bindparam("tenant_id"))
    return statements.prepare(statement.with_for_update(of=model) if lock else statement)


@cache
def _delete(model: Any) -> Delete:
    table = model.__table__
    place = [column == bindparam(column.name) for column in table.primary_key]
    return statements.prepare(delete(table).where(*place))
