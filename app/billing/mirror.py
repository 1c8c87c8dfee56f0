"""The mirror: subscriptions as their billing providers describe them.

Each function runs in the current transaction, in the platform's scope. What was read later wins over
what was read earlier, and over payloads. Of payloads, the provider's time decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, or_, select

from app.billing import customers, quantities
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.config import current_config
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.json_text import dumps_text
from app.plans.flag_types import MAX_LIMIT
from app.subscriptions import service
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass
from app.tenants.lookup import visible_tenant_id

TRIALS = {"trialing", "in_trial", "on_trial"}
"""The providers' words for a free trial."""
MAX_TEXT, MAX_REASON = 255, 500
NO_PLAN = "unknown"  # the plan of a new subscription without items
LATEST = (
    StatusClass.PENDING, StatusClass.UNKNOWN, StatusClass.LIVE, StatusClass.PAST_DUE,
    StatusClass.PAUSED, StatusClass.ENDED,
)  # fmt: skip
"""Of two payloads of the same time, the one whose class comes later counts."""

# Two events of a new subscription at the same time make one row. Prices do not change meanwhile.
LOCK = Statement(
    "subscriptions.lock_of_provider",
    "SELECT pg_advisory_xact_lock_shared(hashtextextended(concat('prices ', CAST(:provider AS text)), 0)),"
    " pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'billing', CAST(:provider AS text),"
    " CAST(:subscription_id AS text)), 0))",
)
LOCK_KNOWN = Statement(
    "subscriptions.lock_known",
    select(Subscription)
    .where(
        Subscription.bp_subscription_id == bindparam("subscription_id"),
        or_(Subscription.bp_provider == bindparam("provider"), Subscription.bp_provider.is_(None)),
    )
    .order_by(Subscription.bp_provider, Subscription.created_at)  # NULL comes last
    .with_for_update(),
)
FIND_TENANTS_OF_CUSTOMER = Statement(
    "subscriptions.find_tenants_of_customer",
    select(Subscription.tenant_id)
    .where(
        Subscription.bp_customer_id == bindparam("customer_id"),
        Subscription.bp_provider == bindparam("provider"),
    )
    .distinct()
    .limit(2),
)
PLAN_OF_ITEMS = Statement(
    "plan_prices.plan_of_items", "SELECT * FROM plan_of_items(:provider, CAST(:items AS json))"
)

DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    "class": ("status_class",),
    "plan": ("plan_name",),
    "period": ("current_period_end", "trial_end", "billing_cycle"),
    "cancellation": ("canceled_at", "cancel_at_period_end", "auto_renew"),
}
"""A kind of difference between a subscription and its provider -> the columns that differ."""


class Outcome(StrEnum):
    """What came of a snapshot, as a sentence for operators."""

    APPLIED = ""
    STALE = "stale: something newer is known"
    WAITING = "waits for its tenant: set metadata.tenant_id at the provider, or map the customer"
    TEST_MODE = "test mode"
    LIVE_MODE = "live mode"


def apply(
    provider: str,
    snapshot: Snapshot,
    *,
    at: datetime,
    is_read: bool,
    tenant: str = "",
    force: bool = False,
) -> Outcome:
    """Insert or update the subscription; the tenant's plan and the limits of quantities follow.

    ``at`` is our time just before the read with ``is_read``, else the provider's time, which counts
    where the snapshot has none itself. ``tenant`` is that of the event. ``force`` applies a snapshot
    that is not the newest, too.
    """
    if snapshot.is_live is not None and snapshot.is_live != _livemode():
        return Outcome.LIVE_MODE if snapshot.is_live else Outcome.TEST_MODE
    key = {"provider": provider, "subscription_id": snapshot.subscription_id}
    LOCK.execute(**key)
    known = LOCK_KNOWN.all(**key)
    row = known[0] if known and (known[0].bp_provider or len(known) == 1) else None
    tenant_id = find_tenant(provider, snapshot, tenant) if row is None else row.tenant_id
    if tenant_id is None:
        return Outcome.WAITING
    row = row or next((one for one in known if one.tenant_id == tenant_id), None)
    moment = at if is_read else snapshot.changed_at or at
    if row is not None and not force and _is_stale(row, snapshot, moment, is_read=is_read):
        return Outcome.STALE
    values, limits = _values(provider, snapshot, moment, row)
    stamps = _stamps(row, snapshot.changed_at if is_read else moment, moment if is_read else None)
    if row is None:
        row, _ = service.create(tenant_id, {**values, **stamps}, actor=SYSTEM_BILLING)
    else:
        row, _ = service.write(row, values, stamps, actor=SYSTEM_BILLING)
    _follow_limits(row, limits, SYSTEM_BILLING)
    return Outcome.APPLIED


def needs_customer(provider: str, snapshot: Snapshot, tenant: str) -> bool:
    """Whether the metadata of the customer at the provider may decide the tenant."""
    if not snapshot.customer_id or _named_tenant(snapshot.tenant, tenant) is not None:
        return False
    return not LOCK_KNOWN.all(provider=provider, subscription_id=snapshot.subscription_id)


def has_tenant(provider: str, event: BillingEvent) -> bool:
    """Whether a tenant is known for an event."""
    if event.customer is not None:
        return _named_tenant(event.customer.tenant) is not None
    if LOCK_KNOWN.all(provider=provider, subscription_id=event.subscription_id):
        return True
    snapshot = event.snapshot
    return snapshot is not None and find_tenant(provider, snapshot, event.tenant) is not None


def note_customer(provider: str, customer: Customer) -> Outcome:
    """Remember the customer's tenant, and apply its waiting events; WAITING for an unknown tenant."""
    tenant_id = _named_tenant(customer.tenant)
    if customer.tenant and tenant_id is None:
        return Outcome.WAITING
    customers.note(provider, customer.id, tenant_id, actor=SYSTEM_BILLING)
    return Outcome.APPLIED


def differences(subscription: Subscription, snapshot: Snapshot) -> set[str]:
    """In which respects the subscription differs from its provider.

    ``class``, ``plan``, ``price``, ``quantity``, ``period``, ``cancellation``. The plan of one that
    has ended does not count.
    """
    provider = subscription.bp_provider or ""
    values, _ = _values(provider, snapshot, subscription.updated_at, subscription)
    change = queries.difference(subscription, values)
    after: Mapping[str, Any] = {} if change is None else change.after
    found = {kind for kind, names in DIFFERENCES.items() if not after.keys().isdisjoint(names)}
    if snapshot.status_class is StatusClass.ENDED:
        found.discard("plan")
    stored, wanted = subscription.items, values["items"]
    if [one["price"] for one in stored] != [one["price"] for one in wanted]:
        found.add("price")
    elif [one["quantity"] for one in stored] != [one["quantity"] for one in wanted]:
        found.add("quantity")
    return found


def follow_prices(subscription_id: UUID, *, actor: Actor) -> None:
    """Give a subscription the plan and the limits that the prices of its stored items give."""
    row = queries.lock_row(Subscription, subscription_id)
    if row.status_class == StatusClass.ENDED:
        return
    plan, limits = _plan(row.bp_provider or "", row.items, row.status_class)
    row, _ = service.write(row, plan, {}, actor=actor)
    _follow_limits(row, limits, actor)


def find_tenant(provider: str, snapshot: Snapshot, tenant: str = "") -> UUID | None:
    """The tenant of a new subscription, or None if it is not known."""
    named = _named_tenant(snapshot.tenant, tenant)
    if named is not None or not snapshot.customer_id:
        return named
    customer = customers.find(provider, snapshot.customer_id)
    if customer is not None and not customer.is_manual:
        return customer.tenant_id
    of_customer = {"provider": provider, "customer_id": snapshot.customer_id}
    found = FIND_TENANTS_OF_CUSTOMER.scalars(**of_customer)
    if len(found) == 1:
        return UUID(str(found[0]))
    return None if customer is None else customer.tenant_id


def _named_tenant(*names: str) -> UUID | None:
    """The tenant of the first name that is an id, an ``idp_org_id`` or a slug of one."""
    return next((found for name in names if name and (found := visible_tenant_id(name))), None)


def _livemode() -> bool:
    return bool(getattr(current_config(), "billing_livemode", True))


def _is_stale(row: Subscription, snapshot: Snapshot, moment: datetime, *, is_read: bool) -> bool:
    if is_read:
        return row.read_at is not None and moment < row.read_at
    if row.read_at is not None and moment <= row.read_at:
        return True
    if row.source_timestamp is None or moment > row.source_timestamp:
        return False
    is_tie = moment == row.source_timestamp
    return not is_tie or LATEST.index(snapshot.status_class) < LATEST.index(
        StatusClass(row.status_class)
    )


def _stamps(
    row: Subscription | None, said_at: datetime | None, read_at: datetime | None
) -> dict[str, object]:
    """The times of the newest snapshot. Neither goes back: ``force`` may apply an older one."""
    before = (None, None) if row is None else (row.source_timestamp, row.read_at)
    newest = [
        max((one for one in times if one is not None), default=None)
        for times in zip(before, (said_at, read_at), strict=True)
    ]
    return {"source_timestamp": newest[0], "read_at": newest[1], "missing_since": None}


def _values(
    provider: str, snapshot: Snapshot, moment: datetime, row: Subscription | None
) -> tuple[dict[str, Any], dict[str, int] | None]:
    """The columns of a snapshot, and the limits of its quantities.

    What the provider does not say stays as it is in ``row``.
    """
    items = [_item(one) for one in snapshot.items]
    plan, limits = _plan(provider, items, snapshot.status_class)
    values: dict[str, Any] = {
        "bp_provider": provider,
        "bp_customer_id": snapshot.customer_id[:MAX_TEXT],
        "bp_status": snapshot.status[:MAX_TEXT],
        "status_class": snapshot.status_class.value,
        **plan,
        "is_free_trial": snapshot.status in TRIALS,
        "start_date": snapshot.start_date,
        "auto_renew": snapshot.auto_renew,
        "trial_end": snapshot.trial_end,
        "current_period_end": snapshot.current_period_end,
        "items": items,
        "collection_is_paused": snapshot.collection_is_paused,
        **_cancellation(snapshot, moment, row),
    }
    if snapshot.currency:
        values["currency"] = snapshot.currency[:MAX_TEXT]
    if snapshot.billing_cycle:
        values["billing_cycle"] = snapshot.billing_cycle
    if snapshot.amount is not None:
        values["per_cycle_billing_amount"] = snapshot.amount
    if row is None:
        first = {
            "bp_subscription_id": snapshot.subscription_id,
            "bp_plan_id": "",
            "plan_name": NO_PLAN,
            "billing_cycle": "monthly",
            "per_cycle_billing_amount": 0,
        }
        values = {**first, **values}
    return values, limits


def _plan(
    provider: str, items: list[dict[str, Any]], status_class: str
) -> tuple[dict[str, str], dict[str, int] | None]:
    """The columns of the plan, and the limits; None: the prices do not say which."""
    found = PLAN_OF_ITEMS.first(provider=provider, items=dumps_text(items)) if items else None
    is_ended = status_class == StatusClass.ENDED
    if found is None:
        return {}, {} if is_ended else None
    plan = {"plan_name": found.plan_name or NO_PLAN, "bp_plan_id": found.price}
    limits = found.limits if found.is_mapped else None
    return plan, {} if is_ended else limits


def _cancellation(
    snapshot: Snapshot, moment: datetime, row: Subscription | None
) -> dict[str, object]:
    """The recorded cancellation; its time is the first one known where the provider has none."""
    if snapshot.canceled_at is None and not snapshot.cancel_at_period_end:
        return dict(service.NO_CANCELLATION)
    known = None if row is None else row.canceled_at
    return {
        "canceled_at": snapshot.canceled_at or known or moment,
        "cancel_at_period_end": snapshot.cancel_at_period_end,
        "cancel_reason": snapshot.cancel_reason[:MAX_REASON] or None,
    }


def _item(item: Item) -> dict[str, Any]:
    quantity = item.quantity
    if quantity is not None and not 0 <= quantity <= MAX_LIMIT:
        quantity = None
    texts = {"id": item.id, "price": item.price, "lookup_key": item.lookup_key}
    return {**{name: text[:MAX_TEXT] for name, text in texts.items()}, "quantity": quantity}


def _follow_limits(row: Subscription, limits: dict[str, int] | None, actor: Actor) -> None:
    found = quantities.follow(row, limits, actor=actor)
    if found != row.limits:
        key = {"tenant_id": row.tenant_id, "id": row.id}
        queries.update_where(Subscription, key, {"limits": found})
