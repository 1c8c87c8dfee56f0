"""Credits: grant, revoke, balances and the ledger.

All work with a balance first locks and refreshes it in PostgreSQL (``refresh_credits``). So a lot
that has expired is never used, and the plan has granted what it grants, before any job has run.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from app.audit import limit_events
from app.audit import service as audit
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.writes import writes
from app.core.errors import Invalid, value_error
from app.credits import statements
from app.credits.models import CreditLot
from app.plans.flag_types import UNLIMITED
from app.tenants.models import Tenant

LOTS_SHOWN = 100  # of each balance
NEWEST = 2**63 - 1  # above the number of every entry
FAULTS = {
    "unknown": ("feature", "the tenant's plan has no limit of the kind `credits` with this key"),
    "too_many": ("feature", "1000 lots have credits left; grant larger ones, or revoke some"),
    "too_large": ("amount", f"all grants that have not expired can have at most {10**18}"),
    "ends": ("expires_at", "must be in the future, and after starts_at"),
}
"""The faults that the database function names: the field and what is wrong with it."""


def grant(
    tenant_id: UUID,
    feature: str,
    amount: int,
    *,
    source: str,
    priority: int,
    starts_at: datetime | None = None,
    expires_at: datetime | None = None,
    reference: str | None = None,
    actor: Actor,
) -> CreditLot:
    """Add a lot to a balance; a ``starts_at`` in the past means now.

    Raises NotFound for an unknown tenant, and Invalid for an unknown feature, a sum that is too
    large, too many lots, and a lot that would end before it starts.
    """
    queries.get_row(Tenant, tenant_id)
    given = {
        "feature": feature,
        "amount": amount,
        "expires_at": expires_at and expires_at.isoformat(),
    }
    granted = statements.GRANT.one(
        **given,
        tenant_id=tenant_id,
        source=source,
        priority=priority,
        starts_at=starts_at,
        reference=reference,
    )
    if granted.fault is not None:
        field, reason = FAULTS[granted.fault]
        raise Invalid(value_error(["body", field], reason, given[field]))
    lot = get_lot(granted.id)
    audit.record("credits.granted", lot, Change({}, {"granted": amount}), actor=actor)
    return lot


def list_lots(tenant_id: UUID, paging: Paging, *, feature: str | None = None) -> Page:
    """One page of a tenant's lots, also those that are used up, have expired or start later."""
    equal = {} if feature is None else {"feature": feature}
    return paginate(CreditLot, paging, equal=equal, tenant_id=tenant_id)


def get_lot(lot_id: UUID | str) -> CreditLot:
    """A lot, as it is stored. Raises NotFound."""
    return statements.FIND_LOT.get("lot", id=queries.parse_id(lot_id, "lot"))


def revoke(
    lot_id: str, *, amount: int | None = None, reason: str, actor: Actor
) -> dict[str, object]:
    """Take back ``amount`` of a lot, or all that is left; at most what is left of it.

    Returns the lot with ``revoked``, and ``spent``: what had been used of it. Raises NotFound.
    """
    known = get_lot(lot_id)
    statements.REFRESH.execute(tenant_id=known.tenant_id, feature=known.feature)
    before = get_lot(lot_id)
    queries.check_precondition(before)
    revoked = before.remaining if amount is None else min(amount, before.remaining)
    remaining = before.remaining - revoked
    lot = {**before._asdict(), "remaining": remaining, "revoked": revoked}
    if revoked:
        place = {"tenant_id": before.tenant_id, "lot_id": before.id}
        statements.POST.execute(**place, kind="revoke", amount=-revoked, reason=reason)
        after = {"remaining": remaining, "reason": reason}
        audit.add_event(
            "credits.revoked",
            target_id=str(before.id),
            tenant_id=before.tenant_id,
            change=Change({"remaining": before.remaining}, after),
            actor=actor,
            data=lot,
        )
        announce_low(before.tenant_id, [before.feature], actor=actor)
    return lot


def list_balances(
    tenant_id: UUID, *, feature: str | None = None, actor: Actor
) -> list[dict[str, object]]:
    """The balances of a tenant, by feature, each with the first lots that are used.

    Raises NotFound for an unknown tenant.
    """
    queries.get_row(Tenant, tenant_id)
    found = statements.REFRESH.all(tenant_id=tenant_id, feature=feature)
    announce_low(tenant_id, [row.feature for row in found], actor=actor)
    lots = _lots(tenant_id, feature=feature, at=None)
    return [
        {
            "feature": row.feature,
            "balance": None if row.most == UNLIMITED else row.free,
            "held": row.held,
            "lots": lots.get(row.feature, []),
            "next_grant_at": row.ends,
        }
        for row in found
    ]


def list_past_balances(
    tenant_id: UUID, at: datetime, *, feature: str | None = None
) -> list[dict[str, object]]:
    """The balances as they were at a time; what holds had taken then is not in them.

    Raises NotFound for an unknown tenant.
    """
    queries.get_row(Tenant, tenant_id)
    lots = _lots(tenant_id, feature=feature, at=at)
    return [
        {
            "feature": name,
            "balance": lots[name][0].balance if name in lots else 0,
            "held": None,
            "lots": lots.get(name, []),
            "next_grant_at": None,
        }
        for name in statements.LIST_BALANCES.scalars(tenant_id=tenant_id, feature=feature)
    ]


def list_entries(
    tenant_id: UUID, *, feature: str | None = None, limit: int, cursor: str | None = None
) -> Page:
    """One page of a tenant's ledger, the newest first."""
    below = NEWEST if cursor is None else int(cursor)
    found = statements.LIST_ENTRIES.all(
        tenant_id=tenant_id, feature=feature, below=below, limit=limit + 1
    )
    page = found[:limit]
    return Page(page, str(page[-1].number) if len(found) > limit else None)


def announce_low(tenant_id: UUID, features: Collection[str], *, actor: Actor) -> None:
    """Record the thresholds that balances have fallen to. The caller has locked the balances."""
    if not features:
        return
    for row in statements.CROSS.all(tenant_id=tenant_id, features=list(features)):
        limit_events.announce_crossed(row, [row.percent], tenant_id=tenant_id, actor=actor)


def refresh(tenant_id: UUID, feature: str, *, actor: Actor) -> None:
    """Bring a balance up to date, and record the thresholds that it has fallen to."""
    statements.REFRESH.execute(tenant_id=tenant_id, feature=feature)
    announce_low(tenant_id, [feature], actor=actor)


def announce_expired(limit: int, *, actor: Actor) -> int:
    """Record what has expired of at most ``limit`` lots; returns their number."""
    found = statements.TAKE_EXPIRED.all(limit=limit)
    with writes() as w:
        for row in found:
            change = Change({}, {"expired": row.amount})
            audit.record("credits.expired", row, change, actor=actor, into=w)
    return len(found)


def _lots(tenant_id: UUID, *, feature: str | None, at: datetime | None) -> dict[str, list[Any]]:
    """The lots that can be used, or could at a time, by feature."""
    found = statements.LIST_LOTS.all(tenant_id=tenant_id, feature=feature, at=at, shown=LOTS_SHOWN)
    return {name: list(lots) for name, lots in groupby(found, lambda row: row.feature)}
