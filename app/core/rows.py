"""Finding one row by its id, inside the current tenant scope."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Select, bindparam, select
from sqlalchemy.exc import IntegrityError

from app.core.concurrency import check_precondition
from app.core.errors import Conflict, NotFound
from app.core.models import Row, TenantRow
from app.core.tenancy import current_scope
from app.extensions import db

R = TypeVar("R", bound=Row)

CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def get_row(model: type[R], row_id: UUID | str) -> R:
    """The row, as it is now; raises NotFound where the scope shows none (or it is no UUID)."""
    found: R = _one(model, row_id, lock=False)
    return found


def lock_row(model: type[R], row_id: UUID | str) -> R:
    """The row this request is about to change, locked until the transaction ends.

    Raises NotFound, and PreconditionFailed where the request's ``If-Match`` does not hold.
    Use it for the one row that the request names; lock others with a statement of your own.
    """
    row: R = _one(model, row_id, lock=True)
    check_precondition(row)
    return row


def flush(conflicts: Mapping[str, Conflict]) -> None:
    """Send pending changes; a unique key named in ``conflicts`` that is taken raises its error.

    The keys are constraint names. The look at the data and the write are one step this way, so
    two requests at once cannot both pass.
    """
    try:
        db.session.flush()
    except IntegrityError as fault:
        name = getattr(getattr(fault.orig, "diag", None), "constraint_name", None)
        if name is None or name not in conflicts:
            raise
        raise conflicts[name] from None


def parse_id(row_id: UUID | str) -> UUID:
    """A path's id; whatever is no UUID is simply unknown: NotFound."""
    if isinstance(row_id, UUID):
        return row_id
    if not CANONICAL.fullmatch(row_id):
        raise NotFound
    return UUID(row_id)


def _one(model: Any, row_id: UUID | str, *, lock: bool) -> Any:
    values: dict[str, Any] = {"id": parse_id(row_id)}
    tenant_id = current_scope().tenant_id if issubclass(model, TenantRow) else None
    if tenant_id is not None:
        values["tenant_id"] = tenant_id
    row = db.session.execute(_statement(model, tenant_id is not None, lock), values).scalar()
    if row is None:
        raise NotFound
    return row


@cache
def _statement(model: Any, of_tenant: bool, lock: bool) -> Select[Any]:
    statement = select(model).where(model.id == bindparam("id"))
    if of_tenant:
        statement = statement.where(model.tenant_id == bindparam("tenant_id"))
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return statement
