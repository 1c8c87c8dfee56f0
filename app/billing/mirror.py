"""The mirror: subscriptions as their billing providers describe them.

Each function runs in the current transaction, in the platform's scope. A later read wins over an
earlier read and over payloads. Between payloads, the provider's time decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from app.billing import customers, quantities
from app.billing.snapshots import BillingEvent, Customer, Snapshot
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.json_text import dumps_text
from app.subscriptions import service
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import CANCELED, StatusClass
from app.tenants.lookup import visible_tenant_id

TRIALS = {"trialing", "in_trial", "on_trial"}
"""The providers' words for a free trial."""
AS_SAID = ("start_date", "auto_renew", "trial_end", "current_period_end", "collection_is_paused")
UNSAID = {
    "bp_plan_id": "",
    "plan_name": "unknown",
    "billing_cycle": "monthly",
    "per_cycle_billing_amount": 0,
}
"""What a new subscription has where its provider does not say it."""
LATER = ("pending", "unknown", "live", "past_due", "paused", "ended")
"""Of two payloads of the same time, the one whose class comes later here counts."""
DIFFERENCES = {
    "class": {"status_class"},
    "plan": {"plan_name"},
    "period": {"current_period_end", "trial_end", "billing_cycle"},
    "cancellation": {"canceled_at", "cancel_at_period_end", "auto_renew"},
}
"""A kind of difference between a subscription and its provider -> the columns that differ."""
KINDS = (*DIFFERENCES, "price", "quantity", "other", "ended")
"""All kinds; ``ended``: the provider does not know the subscription any more."""
STAMPS = {"version", "updated_at", "source_timestamp", "read_at", "missing_since", "limits"}
SHOWN = [c.name for c in Subscription.__table__.columns if c.name not in STAMPS]
MISSING = "the billing provider does not know this subscription"

# Two events of a new subscription at the same time make one row. Prices do not change meanwhile.
LOCK = Statement(
    "subscriptions.lock_of_provider",
    "SELECT pg_advisory_xact_lock_shared("
    "hashtextextended(concat('prices ', CAST(:provider AS text)), 0)),"
    " pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'billing', CAST(:provider AS text),"
    " CAST(:subscription_id AS text)), 0))",
)
LOCK_KNOWN = Statement(
    "subscriptions.lock_known",
    select(Subscription)
    .where(Subscription.bp_subscription_id == bindparam("subscription_id"))
    .order_by(Subscription.created_at)
    .with_for_update(),
)
FIND_TENANTS_OF_CUSTOMER = Statement(
    "subscriptions.find_tenants_of_customer",
    "SELECT DISTINCT tenant_id FROM subscriptions"
    " WHERE bp_customer_id = :customer_id AND bp_provider = :provider LIMIT 2",
)
PLAN_OF_ITEMS = Statement(
    "plan_prices.plan_of_items", "SELECT * FROM plan_of_items(:provider, CAST(:items AS json))"
)


class Outcome(StrEnum):
    """The outcome of a snapshot, as a sentence for operators."""

    APPLIED = ""
    STALE = "stale: something newer is known"
    WAITING = "waits for its tenant: set metadata.tenant_id at the provider, or map the customer"
    OVER = "it has ended, and no tenant is known"
    TAKEN = "the tenant has a subscription of another provider with this id, which has not ended"


class Applied(NamedTuple):
    """The outcome of a snapshot, and the row before and after it."""

    outcome: Outcome
    before: Subscription | None = None
    after: Subscription | None = None


def apply(
    provider: str,
    snapshot: Snapshot,
    *,
    at: datetime,
    is_read: bool,
    tenant: str = "",
    force: bool = False,
) -> Applied:
    """Insert or update the subscription; the tenant's plan and the limits of quantities follow.

    ``at`` is our time just before the read with ``is_read``, else the provider's time, which counts
    where the snapshot has none itself. ``tenant`` is that of the event. ``force`` applies a snapshot
    that is not the newest, too.
    """
    LOCK.execute(provider=provider, subscription_id=snapshot.subscription_id)
    row, known = _known(provider, snapshot.subscription_id)
    tenant_id = find_tenant(provider, snapshot, tenant) if row is None else row.tenant_id
    if tenant_id is None:
        is_over = is_read and snapshot.status_class is StatusClass.ENDED
        return Applied(Outcome.OVER if is_over else Outcome.WAITING)
    row = row or next((one for one in known if one.tenant_id == tenant_id), None)
    if row and row.bp_provider not in (None, provider) and row.status_class != StatusClass.ENDED:
        return Applied(Outcome.TAKEN)
    moment = at if is_read else snapshot.changed_at or at
    if row is not None and not force and _is_stale(row, snapshot, moment, is_read=is_read):
        return Applied(Outcome.STALE, row)
    values, limits = _values(provider, snapshot, moment, row)
    said, read = (snapshot.changed_at, moment) if is_read else (moment, None)
    stamps = {
        "source_timestamp": _latest(said, row.source_timestamp if row else None),
        "read_at": _latest(read, row.read_at if row else None),
        "missing_since": None,
    }
    if row is None:
        after, _ = service.create(tenant_id, {**values, **stamps}, actor=SYSTEM_BILLING)
    else:
        if not limits:  # before they carry over to the next plan
            quantities.follow(row, limits, actor=SYSTEM_BILLING)
        after, _ = service.write(row, values, stamps, actor=SYSTEM_BILLING)
    if limits:
        quantities.follow(after, limits, actor=SYSTEM_BILLING)
    return Applied(Outcome.APPLIED, row, after)


def needs_customer(provider: str, snapshot: Snapshot, tenant: str = "") -> bool:
    """Whether the metadata of the customer at the provider may decide the tenant."""
    if not snapshot.customer_id or _named_tenant(snapshot.tenant, tenant) is not None:
        return False
    return _known(provider, snapshot.subscription_id)[0] is None


def note_customer(provider: str, customer: Customer, at: datetime | None = None) -> Outcome:
    """Remember the customer's tenant, and apply its waiting events; WAITING for an unknown tenant.

    ``at`` is the provider's time; None if the customer was read.
    """
    tenant_id = _named_tenant(customer.tenant)
    if customer.tenant and tenant_id is None:
        return Outcome.WAITING
    tenant_id = tenant_id or _named_tenant(customer.external_id)
    is_noted = customers.note(provider, customer.id, tenant_id, at)
    return Outcome.APPLIED if is_noted else Outcome.STALE


def is_known(provider: str, subscription_id: str) -> bool:
    """Whether it is certain which row the subscription has."""
    return _known(provider, subscription_id)[0] is not None


def has_tenant(provider: str, event: BillingEvent) -> bool:
    """Whether a tenant is known for an event."""
    if event.customer is not None:
        return _named_tenant(event.customer.tenant) is not None
    if is_known(provider, event.subscription_id or ""):
        return True
    said = event.snapshot
    return said is not None and find_tenant(provider, said, event.tenant) is not None


def difference(before: Subscription, after: Subscription) -> queries.Change | None:
    """The changes at the provider, without our own times."""
    return queries.difference(before, {name: getattr(after, name) for name in SHOWN})


def drift(before: Subscription, after: Subscription) -> set[str]:
    """In which respects a row differed from its provider; see :data:`KINDS`."""
    change = difference(before, after)
    changed = set(change.after if change else ())
    found = {kind for kind, columns in DIFFERENCES.items() if columns & changed}
    for kind in ("price", "quantity"):
        stored, wanted = ([one[kind] for one in row.items] for row in (before, after))
        found |= {kind} if stored != wanted else set()
    return found or ({"other"} if changed else set())


def end_missing(row: Subscription) -> Subscription:
    """End a locked subscription that its provider does not know any more."""
    values = {
        "bp_status": CANCELED,
        "status_class": StatusClass.ENDED.value,
        "auto_renew": False,
        "canceled_at": row.canceled_at or row.missing_since,
        "cancel_at_period_end": False,
        "cancel_reason": MISSING,
    }
    quantities.follow(row, {}, actor=SYSTEM_BILLING)
    return service.write(row, values, {}, actor=SYSTEM_BILLING)[0]


def follow_prices(subscription_id: UUID, *, actor: Actor) -> None:
    """Give a subscription the plan and the limits that the prices of its stored items give."""
    row = queries.lock_row(Subscription, subscription_id)
    plan, limits = _plan(row.bp_provider or "", row.items, row.status_class)
    row, _ = service.write(row, plan, {}, actor=actor)
    quantities.follow(row, limits, actor=actor)


def find_tenant(provider: str, snapshot: Snapshot, tenant: str = "") -> UUID | None:
    """The tenant of a new subscription, or None if it is not known."""
    named = _named_tenant(snapshot.tenant, tenant)
    if named is not None or not snapshot.customer_id:
        return named
    customer = customers.find(provider, snapshot.customer_id)
    if customer is not None and not customer.is_manual:
        return customer.tenant_id
    key = {"provider": provider, "customer_id": snapshot.customer_id}
    of_customer: list[UUID] = FIND_TENANTS_OF_CUSTOMER.scalars(**key)
    if len(of_customer) == 1:
        return of_customer[0]
    return None if customer is None else customer.tenant_id


def _known(
    provider: str, subscription_id: str
) -> tuple[Subscription | None, Sequence[Subscription]]:
    """The subscription, if it is certain which it is; and all that have its id.

    That of another provider is taken over once it has ended: an id can move with its subscription.
    """
    known = LOCK_KNOWN.all(subscription_id=subscription_id)
    own = [one for one in known if one.bp_provider == provider]
    free = [one for one in known if one.bp_provider is None]
    return own[0] if own else free[0] if len(free) == 1 else None, known


def _named_tenant(*names: str) -> UUID | None:
    """The tenant of the first name that is a tenant's id, ``idp_org_id`` or slug."""
    return next((found for name in names if name and (found := visible_tenant_id(name))), None)


def _is_stale(row: Subscription, snapshot: Snapshot, moment: datetime, *, is_read: bool) -> bool:
    if row.read_at is not None and moment <= row.read_at:
        return not (is_read and moment == row.read_at)
    if is_read or row.source_timestamp is None or moment > row.source_timestamp:
        return False
    is_later = LATER.index(snapshot.status_class) >= LATER.index(row.status_class)
    return moment < row.source_timestamp or not is_later


def _latest(*moments: datetime | None) -> datetime | None:
    return max((one for one in moments if one is not None), default=None)


def _values(
    provider: str, snapshot: Snapshot, moment: datetime, row: Subscription | None
) -> tuple[dict[str, Any], dict[str, int] | None]:
    """The columns of a snapshot, and the limits of its quantities.

    What the provider does not say stays as it is in ``row``. The first known time of a cancellation
    is kept.
    """
    items = [one._asdict() for one in snapshot.items]
    plan, limits = _plan(provider, items, snapshot.status_class)
    if row is not None and row.status_class == snapshot.status_class == StatusClass.ENDED:
        plan = {}  # it had its plan until it ended
    said = {
        **plan,
        "currency": snapshot.currency or None,
        "billing_cycle": snapshot.billing_cycle or None,
        "per_cycle_billing_amount": snapshot.amount,
    }
    cancellation: dict[str, Any] = service.NO_CANCELLATION
    if not snapshot.auto_renew and (snapshot.canceled_at or snapshot.cancel_at_period_end):
        cancellation = {
            "canceled_at": snapshot.canceled_at or (row and row.canceled_at) or moment,
            "cancel_at_period_end": snapshot.cancel_at_period_end,
            "cancel_reason": snapshot.cancel_reason or None,
        }
    values = {
        "bp_provider": provider,
        "bp_subscription_id": snapshot.subscription_id,
        "bp_customer_id": snapshot.customer_id,
        "bp_status": snapshot.status,
        "status_class": snapshot.status_class.value,
        "is_free_trial": snapshot.status in TRIALS,
        "items": items,
        **{name: getattr(snapshot, name) for name in AS_SAID},
        **cancellation,
        **{name: value for name, value in said.items() if value is not None},
    }
    return values if row else {**UNSAID, **values}, limits


def _plan(
    provider: str, items: list[dict[str, Any]], status_class: str
) -> tuple[dict[str, str | None], dict[str, int] | None]:
    """The columns of the plan, and the limits; None: the prices do not say which."""
    is_ended = status_class == StatusClass.ENDED
    found = PLAN_OF_ITEMS.first(provider=provider, items=dumps_text(items)) if items else None
    if found is None:
        return {}, {} if is_ended else None
    plan = {"plan_name": found.plan_name or None, "bp_plan_id": found.price}
    return plan, {} if is_ended else found.limits
