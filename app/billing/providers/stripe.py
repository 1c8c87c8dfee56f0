"""Stripe: subscriptions, schedules, customers, and the invoices that change a status.

Times are whole seconds, so they tie, and a subscription has no time of its change. A payload has
its first ten items. https://docs.stripe.com/api/events/types lists the events.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import partial

from app.billing.providers import reading
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Item, Snapshot
from app.inbox.providers.payloads import MAX_ID, Document, Unwanted
from app.subscriptions.statuses import class_of

_VERSION = "2026-07-29.dahlia"  # of what is read; an event has the version of its endpoint
_CUSTOMER = reading.customer("metadata")
_PAGE = reading.pages("has_more")
_ITEMS = "/v1/subscription_items?limit=100"
_EVENTS = (
    "customer.created", "customer.updated", "customer.deleted",
    "customer.subscription.created", "customer.subscription.updated",
    "customer.subscription.deleted", "customer.subscription.paused",
    "customer.subscription.resumed", "customer.subscription.trial_will_end",
    "customer.subscription.pending_update_applied", "customer.subscription.pending_update_expired",
    "invoice.payment_failed", "invoice.payment_action_required", "invoice.paid", "invoice.overdue",
    "invoice.marked_uncollectible", "invoice.voided",
    "subscription_schedule.created", "subscription_schedule.updated",
    "subscription_schedule.released", "subscription_schedule.canceled",
    "subscription_schedule.completed", "subscription_schedule.aborted",
    "subscription_schedule.expiring",
)  # fmt: skip
_SHIFTS = {"ISK": -2, "UGX": -2, "MGA": 2}
"""How far amounts are from minor units: https://docs.stripe.com/currencies#special-cases"""
_INVOICED = ("parent", "subscription_details", "subscription")  # since 2025-03-31
_SUBSCRIPTION_IDS = (_INVOICED, ("subscription",), ("released_subscription",))


def _event(event: Document) -> BillingEvent:
    kind, data = str(event.value("type")), event.at("data", "object")
    if kind not in _EVENTS or event.has("account"):
        raise Unwanted("not about a subscription or a customer of this account")
    told = partial(BillingEvent, occurred_at=event.epoch("created"), is_live=event.flag("livemode"))
    if kind.startswith("customer.subscription."):
        snapshot = _snapshot(data)
        return told(subscription_id=snapshot.subscription_id, snapshot=snapshot)
    if kind.startswith("customer."):
        return told(customer=_CUSTOMER(data))
    return told(subscription_id=reading.subscription_of(data, *_SUBSCRIPTION_IDS))


def _snapshot(subscription: Document) -> Snapshot:
    items = [item for item in subscription.objects("items", "data") if not item.flag("deleted")]
    recurring = items[0].at("price", "recurring") if items else Document(None)
    status = subscription.identifier("status")
    # Since the version of 2025-03-31 only the items have periods, which can differ.
    period_end = reading.earliest(item.optional_epoch("current_period_end") for item in items)
    period_end = period_end or subscription.optional_epoch("current_period_end")
    canceled_at, ended_at = map(subscription.optional_epoch, ("canceled_at", "ended_at"))
    details = subscription.at("cancellation_details")
    currency = reading.currency(subscription, "currency")
    amount = reading.total(_amount(item, currency) for item in items)
    return Snapshot(
        subscription_id=subscription.identifier("id"),
        customer_id=reading.reference(subscription, "customer"),
        status=status,
        status_class=class_of(status),
        tenant=reading.tenant(subscription.at("metadata"), subscription.at("customer", "metadata")),
        items=tuple(_item(item) for item in items),
        currency=currency,
        amount=None if subscription.flag("items", "has_more") else amount,
        billing_cycle=reading.billing_cycle(recurring, "interval", "interval_count"),
        start_date=subscription.optional_epoch("start_date") or subscription.epoch("created"),
        trial_end=subscription.optional_epoch("trial_end"),
        current_period_end=period_end,
        collection_is_paused=subscription.has("pause_collection"),
        canceled_at=canceled_at or ended_at,
        cancel_at_period_end=_ends_with_period(subscription, period_end),
        cancel_reason=details.first_text(("comment",), ("feedback",), ("reason",))[:MAX_ID],
        is_live=subscription.flag("livemode"),
    )


def _ends_with_period(subscription: Document, period_end: datetime | None) -> bool:
    """``cancel_at`` also says it, unless it is in a later period."""
    cancel_at = subscription.optional_epoch("cancel_at")
    is_set = cancel_at is not None and (period_end is None or cancel_at <= period_end)
    return is_set or subscription.flag("cancel_at_period_end") is True


def _item(item: Document) -> Item:
    price, key = reading.word(item, "price", "id"), reading.word(item, "price", "lookup_key")
    return Item(reading.word(item, "id"), price, reading.whole(item, "quantity"), key)


def _amount(item: Document, currency: str) -> tuple[int | None, int | None]:
    """Unknown for tiers, parts of a cent, metered prices, and packages, which divide a quantity."""
    is_package = item.has("price", "transform_quantity")
    quantity = None if is_package else reading.whole(item, "quantity")
    price = reading.whole(item, "price", "unit_amount")
    return price and int(Decimal(price).scaleb(_SHIFTS.get(currency, 0))), quantity


def _more_path(subscription: Document) -> str | None:
    """The list of items from its start: the order of those in the subscription is not documented."""
    if not subscription.flag("items", "has_more"):
        return None
    path = reading.paged(_ITEMS, "subscription")(subscription.identifier("id"))
    return reading.paged(path, "starting_after")(reading.word(subscription, "items", "next"))


def _with_more(subscription: Document, answer: Document) -> Document:
    page, known = _PAGE(answer, ""), subscription.objects("items", "data")
    items = {reading.word(item, "id"): item.members() for item in (*known, *page.subscriptions)}
    has_more = page.cursor is not None and len(items) > len(known)
    found = {"data": list(items.values()), "has_more": has_more, "next": page.cursor}
    return Document({**subscription.members(), "items": found})


PROVIDER = BillingProvider(
    name="stripe",
    title="Stripe",
    api_url="https://api.stripe.com",
    headers=lambda key: {"Authorization": f"Bearer {key}", "Stripe-Version": _VERSION},
    reads_per_second=25,
    event=_event,
    event_id=lambda event: event.value("id"),
    snapshot=_snapshot,
    customer=_CUSTOMER,
    subscription_path=reading.below("/v1/subscriptions"),
    customer_path=reading.below("/v1/customers"),
    page_path=reading.paged("/v1/subscriptions?status=all&limit=100", "starting_after"),
    more_path=_more_path,
    with_more=_with_more,
    page=_PAGE,
    event_types=_EVENTS,
)
