"""Holds and leases: amounts of limits that are taken first and counted when they were used.

A hold is settled once; what was not used is free again. The holder of a lease reports again and
again how much of it is used. Both end by themselves at ``expires_at``, by PostgreSQL's clock.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from app.audit import limit_events
from app.core.actors import Actor
from app.core.db.list_conditions import Condition
from app.core.db.pages import Page, Paging, paginate
from app.core.db.queries import parse_id
from app.core.db.tenancy import current_scope
from app.core.errors import Invalid, NotFound, value_error
from app.credits.service import announce_low
from app.usage.hold_errors import HoldEnded
from app.usage.hold_statements import EXTEND, GET, HOLD, IN_STATE, NOT_SHOWN, SETTLE, SHOWN, SWEEP
from app.usage.limits import LimitReached
from app.usage.models import HoldKind, HoldState, UsageHold
from app.usage.service import FAULTS, Request, decision_of, raise_fault


def hold(
    tenant_id: UUID,
    *,
    feature: str,
    amount: int,
    ttl_seconds: int,
    idempotency_key: str | None = None,
    reference: str | None = None,
    kind: HoldKind = HoldKind.HOLD,
) -> Any:
    """Hold an amount of a limit. A lease takes less if less is free.

    An ``idempotency_key`` makes one hold in 24 hours, and finds it as it is now. Raises NotFound for
    an unknown tenant, TenantSuspended, LimitReached, and Invalid for an unknown feature, seats, a
    lease of a soft limit or of credits, and a key that was used with another amount.
    """
    request = Request(feature=feature, amount=amount, idempotency_key=idempotency_key)
    row = HOLD.first(
        tenant_id=tenant_id,
        feature=feature,
        id=uuid7(),
        kind=kind.value,
        amount=amount,
        seconds=ttl_seconds,
        digest=request.digest,
        reference=reference,
    )
    if row is None:
        raise NotFound.of("tenant")
    raise_fault(row.fault, request)
    if not row.is_allowed:
        raise LimitReached(decision_of(row._replace(feature=feature)))
    return row


def list_holds(
    tenant_id: UUID, paging: Paging, *, feature: str | None = None, state: HoldState | None = None
) -> Page:
    """One page of a tenant's holds and leases."""
    return paginate(
        UsageHold,
        paging,
        *([] if state is None else [Condition(IN_STATE[state], {})]),
        equal={} if feature is None else {"feature": feature},
        tenant_id=tenant_id,
        without=NOT_SHOWN,
        further=SHOWN,
    )


def get_hold(hold_id: str) -> Any:
    """A hold or lease, as it is now. Raises NotFound."""
    return GET.get("hold", id=parse_id(hold_id, "hold"), tenant_id=current_scope().tenant_id)


def settle(hold_id: str, amount: int, *, actor: Actor) -> Any:
    """Count what was used of a hold, and end it. The same amount again changes nothing.

    More than was held is counted if it fits; else the rest is ``over_by``. A hold that has expired
    can be settled for 24 hours. Raises NotFound, and HoldEnded for another end.
    """
    return _settle(hold_id, HoldKind.HOLD, amount, rest=0, actor=actor)


def release(hold_id: str, *, actor: Actor) -> None:
    """End a hold of which nothing was used. Raises what :func:`settle` does."""
    _settle(hold_id, HoldKind.HOLD, 0, rest=0, state=HoldState.RELEASED, actor=actor)


def extend(hold_id: str, ttl_seconds: int) -> Any:
    """Let an open hold expire ``ttl_seconds`` from now. Raises NotFound and HoldEnded."""
    own = {"id": parse_id(hold_id, "hold"), "tenant_id": current_scope().tenant_id}
    row = EXTEND.first(**own, seconds=ttl_seconds)
    if row is not None:
        return row
    found = get_hold(hold_id)
    if found.kind == HoldKind.LEASE:
        raise NotFound.of("hold")
    raise HoldEnded(found)


def renew(
    lease_id: str,
    used: int,
    *,
    amount: int | None = None,
    ttl_seconds: int | None = None,
    actor: Actor,
) -> Any:
    """Count what is used of a lease since the last report, and let it expire later.

    ``used`` is the total. The lease then holds ``amount``, or less if less is free; with None it
    holds its rest, and with 0 it ends. Raises what :func:`settle` does, and Invalid if ``used`` is
    less than before.
    """
    return _settle(lease_id, HoldKind.LEASE, used, rest=amount, seconds=ttl_seconds, actor=actor)


def sweep(limit: int) -> int:
    """End holds that have expired, of at most ``limit`` counters; returns the counters' number."""
    return SWEEP.execute(count=limit)


def _settle(
    hold_id: str,
    kind: HoldKind,
    total: int,
    *,
    rest: int | None,
    seconds: int | None = None,
    state: HoldState = HoldState.SETTLED,
    actor: Actor,
) -> Any:
    row = SETTLE.first(
        tenant_id=current_scope().tenant_id,
        id=parse_id(hold_id, kind.value),
        kind=kind.value,
        state=state.value,
        total=total,
        rest=rest,
        seconds=seconds,
    )
    if row is None:
        raise NotFound.of(kind.value)
    if row.fault == "ended":
        raise HoldEnded(row)
    if row.fault is not None:
        field = "used" if kind is HoldKind.LEASE else "amount"
        raise Invalid(value_error(["body", field], FAULTS[row.fault][1], total))
    limit_events.announce_crossed(row, row.crossed, tenant_id=row.tenant_id, actor=actor)
    announce_low(row.tenant_id, [row.credits] if row.credits else [], actor=actor)
    if row.overrun:
        limit_events.announce_overrun(row, actor=actor)
    return row
