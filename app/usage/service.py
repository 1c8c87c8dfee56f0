"""Usage of limits: consume, check, list, correct.

Counting is one statement. PostgreSQL locks the counter, finds the limit and the period, and decides
there, so the count is exact whatever happens to a request. PostgreSQL's clock decides the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from app.audit import limit_events
from app.audit import service as audit
from app.auth.guard import TenantSuspended
from app.core.actors import Actor
from app.core.db import list_cursors, tenancy
from app.core.db.pages import Page
from app.core.db.queries import Change, update_where
from app.core.errors import Entry, Invalid, Location, NotFound, error, value_error
from app.credits.service import announce_low
from app.memberships.seats import SEATS
from app.usage.limits import BelowZero, Decision, LimitReached, Usage
from app.usage.models import EPOCH, UsageCounter
from app.usage.statements import CONSUME, LIST, LOCK

EARLIEST, LATEST = EPOCH, datetime(9999, 1, 1, tzinfo=UTC)

SUSPENDED = "suspended"
FAULTS = {
    "unknown": (
        "feature",
        "the tenant's plan has no such limit; list the tenant's usage to see its limits",
    ),
    "seats": ("feature", "seats are counted from memberships and invitations"),
    "negative": ("amount", "only a limit of the period none takes a negative amount"),
    "too_large": ("amount", "the count would be too large"),
    "at": ("at", "must be in the current period"),
    "reused": ("idempotency_key", "this key was used with another amount"),
    "credits": ("feature", "limits that are or take credits have no leases"),
    "soft": ("feature", "only hard limits have leases"),
    "less": ("used", "must not be less than was reported before"),
}
"""The faults that the database function names: the field and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An amount to count; ``loc`` is its place in the HTTP request's body."""

    feature: str
    amount: int = 1
    idempotency_key: str | None = None
    at: datetime | None = None
    loc: Location = ("body",)

    @property
    def digest(self) -> UUID | None:
        """The stored form of the idempotency key: a digest of the key and the feature."""
        if self.idempotency_key is None:
            return None
        key = f"{self.feature}\0{self.idempotency_key}".encode()
        return UUID(bytes=sha256(key).digest()[:16])


def consume(tenant_id: UUID, request: Request, *, actor: Actor) -> Decision:
    """Count an amount. Raises what :func:`consume_all` does, LimitReached and BelowZero."""
    (decision,) = consume_all(tenant_id, [request], actor=actor)
    if decision.allowed:
        return decision
    raise (BelowZero if request.amount < 0 else LimitReached)(decision)


def consume_all(tenant_id: UUID, requests: Sequence[Request], *, actor: Actor) -> list[Decision]:
    """Count the amounts that fit, in the order of their features, all by one statement.

    An ``idempotency_key`` counts once in 24 hours. Raises NotFound for an unknown tenant,
    TenantSuspended, and Invalid for an unknown feature, seats, a negative amount of a limit that
    starts anew, an ``at`` outside the current period, and a key that was used with another amount.
    """
    found = _decide(tenant_id, requests, is_counted=True)
    for row in found:
        limit_events.announce_crossed(row, row.crossed, tenant_id=tenant_id, actor=actor)
    balances = {row.credits for row in found if row.credits and row.is_allowed}
    announce_low(tenant_id, balances, actor=actor)
    return [decision_of(row) for row in found]


def check_all(tenant_id: UUID, requests: Sequence[Request]) -> list[Decision]:
    """Whether each amount alone would fit now. Raises what :func:`consume_all` does."""
    found = _decide(tenant_id, requests, is_counted=False)
    return [decision_of(row) for row in found]


def decision_of(row: Any) -> Decision:
    """The answer to an amount that was decided, as the database functions return it."""
    return Decision(row.is_allowed, _state(row, affords=row.affords))


def raise_fault(fault: str | None, request: Request) -> None:
    """Raise Invalid or TenantSuspended for a fault of one request; None: there is none."""
    if fault == SUSPENDED:
        raise TenantSuspended
    if fault is not None:
        raise Invalid(_fault(fault, request))


def list_usage(
    tenant_id: UUID,
    *,
    feature: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page:
    """One page of the periods of a tenant's limits, by feature, the newest first.

    The current period of each limit is there, also where nothing was counted. With ``since`` and
    ``until``, only periods that overlap this time. Another tenant than the scope's has none.
    """
    own = tenancy.current_scope().tenant_id
    if own not in (None, tenant_id):
        return Page([], None)
    last_start, last_feature = (
        (None, None) if cursor is None else list_cursors.unpack(cursor, datetime.fromisoformat, str)
    )
    found = LIST.all(
        tenant_id=tenant_id,
        feature=feature,
        since=since or EARLIEST,
        until=until or LATEST,
        last_feature=last_feature,
        last_start=last_start,
        limit=limit + 1,
    )
    page = found[:limit]
    has_more = len(found) > limit
    next_cursor = list_cursors.pack(page[-1].starts, page[-1].feature) if has_more else None
    return Page([_usage(row) for row in page], next_cursor)


def correct(tenant_id: UUID, feature: str, used: int, *, reason: str, actor: Actor) -> Usage:
    """Set what is used in the current period.

    Raises NotFound for an unknown tenant or limit, and Invalid for seats and credits.
    """
    if feature == SEATS:
        raise Invalid(value_error(["path", "feature"], FAULTS["seats"][1], feature))
    row = LOCK.get("limit", tenant_id=tenant_id, feature=feature)
    if row.credits == feature:
        raise Invalid(value_error(["path", "feature"], "credits are granted and revoked", feature))
    if row.used != used:
        counter = {"tenant_id": tenant_id, "feature": feature, "period_start": row.starts}
        update_where(UsageCounter, counter, {"used": used})
        audit.add_event(
            "usage.corrected",
            target_id=feature,
            tenant_id=tenant_id,
            change=Change({"used": row.used}, {"used": used, "reason": reason}),
            actor=actor,
        )
    return _usage(row._replace(used=used))


def _decide(tenant_id: UUID, requests: Sequence[Request], *, is_counted: bool) -> list[Any]:
    found = CONSUME.all(
        tenant_id=tenant_id,
        features=[request.feature for request in requests],
        amounts=[request.amount for request in requests],
        moments=[request.at for request in requests],
        digests=[request.digest for request in requests],
        is_counted=is_counted,
    )
    if not found:
        raise NotFound.of("tenant")
    errors = [
        _fault(row.fault, request)
        for row, request in zip(found, requests, strict=True)
        if row.fault not in (None, SUSPENDED)
    ]
    if errors:
        raise Invalid(*errors)
    if any(row.fault == SUSPENDED for row in found):
        raise TenantSuspended
    return found


def _fault(fault: str, request: Request) -> Entry:
    field, reason = FAULTS[fault]
    value = getattr(request, field)
    loc = [*request.loc, field]
    if fault == "reused":
        return error(loc, "idempotency_key_reused", reason.capitalize(), value)
    return value_error(loc, reason, value)


def _usage(row: Any) -> Usage:
    period_start = None if row.starts == EPOCH else row.starts
    return _state(row, period_start=period_start, is_current=row.is_current)


def _state(row: Any, **more: Any) -> Usage:
    return Usage(
        feature=row.feature,
        limit=row.most,
        used=row.used,
        held=row.held,
        policy=row.policy,
        resets_at=row.ends,
        **more,
    )
