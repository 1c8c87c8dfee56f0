"""Seats: how many active memberships of active users the limit ``seats`` of a plan allows.

The database function ``lock_seats`` locks the tenant's row where there is a hard limit, and then
counts. So the second of two concurrent changes sees the result of the first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    ColumnExpressionArgument,
    Uuid,
    bindparam,
    cast,
    func,
    null,
    select,
)

from app.audit.service import record
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.tenants.models import Tenant

SEATS = "seats"
NOBODY = cast(null(), Uuid)


class SeatLimit(Conflict):
    """The plan limits the seats, and none is free."""

    code = "seat_limit"
    detail = "No seat is free: the plan limits the active memberships."


def seats_for_member(
    tenant_id: ColumnExpressionArgument[UUID], user_id: ColumnExpressionArgument[UUID]
) -> ColumnElement[Any]:
    """A column: the free seats for a user whose membership becomes active.

    It is None without a limit, and where the user is not active.
    """
    return func.lock_seats(tenant_id, user_id, NOBODY)


def seats_for_user(
    tenant_id: ColumnExpressionArgument[UUID], user_id: ColumnExpressionArgument[UUID]
) -> ColumnElement[Any]:
    """A column: the free seats for a user who becomes active.

    It is None without a limit, and where the user has no active membership.
    """
    return func.lock_seats(tenant_id, NOBODY, user_id)


def free_seats(tenant_id: ColumnExpressionArgument[UUID]) -> ColumnElement[Any]:
    """A column: the free seats, negative beyond the limit; None without a limit."""
    return func.lock_seats(tenant_id, NOBODY, NOBODY)


_tenants = func.unnest(bindparam("tenant_ids", type_=ARRAY(Uuid)))
_tenant_ids = _tenants.table_valued("id").render_derived()
_free = select(free_seats(_tenant_ids.c.id).label("free")).order_by(_tenant_ids.c.id).subquery()
FEWEST_FREE = Statement("tenants.lock_fewest_free_seats", select(func.min(_free.c.free)))


def check_within_limits(tenant_ids: Collection[UUID]) -> None:
    """Raise SeatLimit if one of the tenants has more active members than its plan allows.

    Call it after the members are written.
    """
    if tenant_ids:
        fewest = FEWEST_FREE.scalar(tenant_ids=sorted(tenant_ids))
        if fewest is not None and fewest < 0:
            raise SeatLimit


def check_is_free(free: int | None) -> None:
    """Raise SeatLimit if there is a limit and no free seat."""
    if free is not None and free < 1:
        raise SeatLimit


def record_excess(free: int, taken: int, *, tenant: Tenant, actor: Actor) -> None:
    """Audit ``tenant.over_seats`` if more seats than the ``free`` ones were ``taken``."""
    if taken <= max(free, 0):
        return
    change = Change({"free_seats": free}, {"free_seats": free - taken})
    record("tenant.over_seats", tenant, change, actor=actor)
