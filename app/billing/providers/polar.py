"""Polar: subscriptions and customers, with the product as the plan and seats as its quantity.

Each change gives ``subscription.updated`` and often a second event; the status counts, and not the
name of the event. The event's id is the header ``webhook-id``.
https://polar.sh/docs/integrate/webhooks/events lists the events.
"""

from __future__ import annotations

from functools import partial

from app.billing.providers import reading
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import MAX_ID, Document, Unwanted
from app.subscriptions.statuses import class_of

_EVENTS = (
    "subscription.created", "subscription.active", "subscription.updated",
    "subscription.canceled", "subscription.uncanceled", "subscription.past_due",
    "subscription.revoked", "subscription.paused", "subscription.resumed",
    "customer.created", "customer.updated", "customer.deleted", "customer.state_changed",
)  # fmt: skip


def _event(event: Document) -> BillingEvent:
    kind, data = str(event.value("type")), event.at("data")
    if kind not in _EVENTS:
        raise Unwanted("not about a subscription or a customer")
    told = partial(BillingEvent, occurred_at=event.moment("timestamp"))
    if kind.startswith("customer."):
        return told(customer=_customer(data))
    snapshot = _snapshot(data)
    return told(subscription_id=snapshot.subscription_id, snapshot=snapshot)


def _snapshot(subscription: Document) -> Snapshot:
    status = subscription.identifier("status")
    product, seats = reading.word(subscription, "product_id"), reading.whole(subscription, "seats")
    cycle = "recurring_interval", "recurring_interval_count"
    canceled_at, ended_at = map(subscription.optional_moment, ("canceled_at", "ended_at"))
    reasons = ("customer_cancellation_comment",), ("customer_cancellation_reason",)
    created_at, customer = subscription.moment("created_at"), subscription.at("customer")
    return Snapshot(
        subscription_id=subscription.identifier("id"),
        customer_id=subscription.identifier("customer_id"),
        status=status,
        status_class=class_of(status),
        tenant=reading.tenant(subscription.at("metadata"), customer.at("metadata"))
        or _external_id(customer),
        items=(Item(product, product, 1 if seats is None else seats),),
        currency=reading.currency(subscription, "currency"),
        amount=reading.whole(subscription, "amount"),
        billing_cycle=reading.billing_cycle(subscription, *cycle),
        start_date=subscription.optional_moment("started_at") or created_at,
        trial_end=subscription.optional_moment("trial_end"),
        current_period_end=subscription.optional_moment("current_period_end"),
        canceled_at=canceled_at or ended_at,
        cancel_at_period_end=subscription.flag("cancel_at_period_end") is True,
        cancel_reason=subscription.first_text(*reasons)[:MAX_ID],
        changed_at=subscription.optional_moment("modified_at") or created_at,
    )


def _external_id(customer: Document) -> str:
    """The id that the merchant gave the customer."""
    external_id = (customer.text("external_id") or "").strip()
    return external_id if len(external_id) <= MAX_ID else ""


def _customer(customer: Document) -> Customer:
    tenant = reading.tenant(customer.at("metadata"))
    return Customer(customer.identifier("id"), tenant, _external_id(customer))


PROVIDER = BillingProvider(
    name="polar",
    title="Polar",
    api_url="https://api.polar.sh",
    headers=lambda key: {"Authorization": f"Bearer {key}"},
    reads_per_second=8,
    event=_event,
    event_id=lambda event: None,
    snapshot=_snapshot,
    customer=_customer,
    subscription_path=reading.below("/v1/subscriptions"),
    customer_path=reading.below("/v1/customers"),
    # The oldest subscription first, so that a new one moves no other to a later page.
    page_path=reading.paged("/v1/subscriptions/?sorting=started_at&limit=100", "page"),
    page=reading.numbered_pages("items", "pagination", "max_page"),
    event_types=_EVENTS,
)
