"""Seats: how many active members and pending invitations the limit ``seats`` of a plan allows.

The rule is ``migrations/functions/lock_seat_limit.sql``. The function locks the tenant's row where
there is a limit, and then counts. So the second of two concurrent changes sees the result of the
first. Its result is JSON: the limit with the seats that are ``used``, and in ``announced`` the
highest threshold of ``warn_at`` that was recorded for this limit; None without a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    ColumnExpressionArgument,
    Uuid,
    bindparam,
    cast,
    func,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from app.audit import limit_events
from app.audit.service import record
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import Writes, writes
from app.core.errors import Conflict
from app.core.json_text import Json
from app.tenants.models import Tenant
from app.usage.models import EPOCH, UsageCounter

SEATS = "seats"
HARD = "hard"  # a policy; flags are a higher layer
Limit = Mapping[str, Json]  # what the database function answers
Id = ColumnExpressionArgument[UUID]
NOBODY = cast(null(), Uuid)


class SeatLimit(Conflict):
    code = "seat_limit"
    detail = "No seat is free: the plan limits members and invitations. Deactivate or revoke one, or change the plan."


def limit_of(
    tenant_id: Id, *, member: Id = NOBODY, user: Id = NOBODY
) -> ColumnElement[Limit | None]:
    """A column: the limit of seats.

    ``member`` is a user whose membership becomes active; None where the user is not active.
    ``user`` is a user who becomes active; None where the user has no active membership.
    """
    return func.lock_seat_limit(tenant_id, member, user, type_=JSON)


_tenants = func.unnest(bindparam("tenant_ids", type_=ARRAY(Uuid)))
_tenant_ids = _tenants.table_valued("id").render_derived()
LOCK_LIMITS = Statement(
    "tenants.lock_seat_limits",
    select(_tenant_ids.c.id, limit_of(_tenant_ids.c.id).label("limit")).order_by(_tenant_ids.c.id),
)
_new_counter = insert(UsageCounter).values(
    tenant_id=bindparam("tenant_id"),
    feature=SEATS,
    period_start=EPOCH,
    used=0,
    held=0,
    announced=bindparam("announced"),
    announced_limit=bindparam("limit"),
)
SET_ANNOUNCED = Statement(
    "usage_counters.set_announced_seats",
    _new_counter.on_conflict_do_update(
        index_elements=UsageCounter.__table__.primary_key.columns,
        set_={
            "announced": _new_counter.excluded.announced,
            "announced_limit": _new_counter.excluded.announced_limit,
        },
    ),
)
"""The counter of seats has only the threshold; the seats are counted from the memberships."""


def take(limit: Limit | None, tenant_id: UUID, *, actor: Actor, into: Writes | None = None) -> None:
    """Take one seat of a limit that was read before, and record the thresholds that it crosses.

    Raises SeatLimit if none is free.
    """
    if limit is not None:
        _check(limit, limit["used"] + 1)
        with writes(into) as w:
            _announce(limit, limit["used"] + 1, tenant_id, actor=actor, into=w)


def check_within_limits(tenant_ids: Collection[UUID], *, actor: Actor) -> None:
    """Raise SeatLimit if one of the tenants has more active members than its plan allows.

    Otherwise record the thresholds that are crossed. Call it after the members are written.
    """
    if not tenant_ids:
        return
    limits = {
        row.id: row.limit
        for row in LOCK_LIMITS.all(tenant_ids=sorted(tenant_ids))
        if row.limit is not None
    }
    for limit in limits.values():
        _check(limit, limit["used"])
    with writes() as w:
        for tenant_id, limit in limits.items():
            _announce(limit, limit["used"], tenant_id, actor=actor, into=w)


def take_beyond(limit: Limit, count: int, *, tenant: Tenant, actor: Actor, into: Writes) -> None:
    """Take seats, also more than are free: those of a hard limit are audited as such.

    The action is ``tenant.over_seats``.
    """
    if count < 1:
        return
    free = limit["most"] - limit["used"]
    if limit["policy"] == HARD and count > max(free, 0):
        change = Change({"free_seats": free}, {"free_seats": free - count})
        record("tenant.over_seats", tenant, change, actor=actor, into=into)
    _announce(limit, limit["used"] + count, tenant.id, actor=actor, into=into)


def _check(limit: Limit, used: int) -> None:
    """Raise SeatLimit if ``used`` seats are more than a hard limit."""
    if limit["policy"] == HARD and used > limit["most"]:
        raise SeatLimit


def _announce(limit: Limit, used: int, tenant_id: UUID, *, actor: Actor, into: Writes) -> None:
    """Record the thresholds that ``used`` seats have crossed, each once."""
    crossed = [
        percent
        for percent in sorted(set(limit["warn_at"]))
        if percent > limit["announced"] and 100 * used >= percent * limit["most"]
    ]
    if not crossed:
        return
    SET_ANNOUNCED.execute(tenant_id=tenant_id, announced=crossed[-1], limit=limit["most"])
    state = limit_events.LimitState(SEATS, used, limit["most"], limit["policy"], None)
    limit_events.announce_crossed(state, crossed, tenant_id=tenant_id, actor=actor, into=into)
