"""Paddle Billing: subscriptions, customers, and transactions whose payment failed.

A failed renewal is first reported with the status ``active`` and a new period.
https://developer.paddle.com/webhooks/overview lists the events.
"""

from __future__ import annotations

from functools import partial

from app.billing.providers import reading
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Item, Snapshot
from app.inbox.providers.payloads import Document, Unwanted
from app.subscriptions.statuses import class_of

_CUSTOMER = reading.customer("custom_data")
_EVENTS = (
    "subscription.created", "subscription.updated", "subscription.trialing",
    "subscription.activated", "subscription.past_due", "subscription.paused",
    "subscription.resumed", "subscription.canceled", "subscription.imported",
    "customer.created", "customer.updated", "customer.imported",
    "transaction.payment_failed", "transaction.past_due",
)  # fmt: skip


def _event(event: Document) -> BillingEvent:
    kind, data = str(event.value("event_type")), event.at("data")
    if kind not in _EVENTS:
        raise Unwanted("not about a subscription or a customer")
    told = partial(BillingEvent, occurred_at=event.moment("occurred_at"))
    if kind.startswith("subscription."):
        snapshot = _snapshot(data)
        return told(subscription_id=snapshot.subscription_id, snapshot=snapshot)
    if kind.startswith("customer."):
        return told(customer=_CUSTOMER(data))
    subscription_id = reading.subscription_of(data, ("subscription_id",))
    return told(subscription_id=subscription_id, tenant=reading.tenant(data.at("custom_data")))


def _snapshot(subscription: Document) -> Snapshot:
    """An item has no id: its price identifies it. A one-time item is not part of a period."""
    items = [item for item in subscription.objects("items") if item.flag("recurring") is not False]
    status = subscription.identifier("status")
    recurring = subscription.at("billing_cycle")
    trial_ends = (item.optional_moment("trial_dates", "ends_at") for item in items)
    return Snapshot(
        subscription_id=subscription.identifier("id"),
        customer_id=subscription.identifier("customer_id"),
        status=status,
        status_class=class_of(status),
        tenant=reading.tenant(subscription.at("custom_data")),
        items=tuple(_item(item) for item in items),
        currency=reading.currency(subscription, "currency_code"),
        amount=reading.total(_amount(item) for item in items),
        billing_cycle=reading.billing_cycle(recurring, "interval", "frequency"),
        start_date=subscription.optional_moment("started_at") or subscription.moment("created_at"),
        trial_end=reading.earliest(trial_ends),
        current_period_end=subscription.optional_moment("current_billing_period", "ends_at"),
        canceled_at=subscription.optional_moment("canceled_at"),
        cancel_at_period_end=subscription.text("scheduled_change", "action") == "cancel",
        changed_at=subscription.optional_moment("updated_at"),
    )


def _item(item: Document) -> Item:
    price = reading.word(item, "price", "id")
    return Item(price, price, reading.whole(item, "quantity"))


def _amount(item: Document) -> tuple[int | None, int | None]:
    return reading.whole(item, "price", "unit_price", "amount"), reading.whole(item, "quantity")


PROVIDER = BillingProvider(
    name="paddle",
    title="Paddle",
    api_url="https://api.paddle.com",
    headers=lambda key: {"Authorization": f"Bearer {key}", "Paddle-Version": "1"},
    reads_per_second=4,
    event=_event,
    event_type=lambda event: event.value("event_type"),
    event_id=lambda event: event.value("event_id"),
    snapshot=_snapshot,
    customer=_CUSTOMER,
    subscription_path=reading.below("/subscriptions"),
    customer_path=reading.below("/customers"),
    page_path=reading.paged("/subscriptions?order_by=id%5BASC%5D&per_page=200", "after"),
    subscription_in=lambda answer: answer.at("data"),
    customer_in=lambda answer: answer.at("data"),
    page=reading.pages("meta", "pagination", "has_more"),
    event_types=_EVENTS,
)
