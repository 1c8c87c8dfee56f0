"""Lemon Squeezy: subscriptions, and invoices of subscriptions; JSON:API.

An event has no id. Only events have the data of the checkout, and so the tenant; the API has not.
A subscription has one price, its variant; ``snapshot`` knows the amount and the interval if
``with_more`` has added that price as ``price``.
https://docs.lemonsqueezy.com/help/webhooks/event-types lists the events.
"""

from __future__ import annotations

from app.billing.providers import reading
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.statuses import StatusClass

_CLASSES = {
    "on_trial": StatusClass.LIVE,
    "active": StatusClass.LIVE,
    "cancelled": StatusClass.LIVE,  # until ``ends_at``
    "past_due": StatusClass.PAST_DUE,
    "unpaid": StatusClass.PAST_DUE,  # all retries have failed
    "paused": StatusClass.PAUSED,
    "expired": StatusClass.ENDED,
}
_CHANGES = (
    "created updated cancelled resumed expired paused unpaused plan_changed"
    " payment_success payment_failed payment_recovered payment_refunded"
)
_ITEM = ("attributes", "first_subscription_item")


def _event(event: Document) -> BillingEvent:
    data, snapshot = event.at("data"), None
    if data.value("type") == "subscriptions":
        snapshot = _snapshot(data)
        subscription_id = snapshot.subscription_id
    elif data.value("type") == "subscription-invoices":
        subscription_id = _id(data, "attributes", "subscription_id")
    else:
        raise Unwanted("not about a subscription")
    return BillingEvent(
        subscription_id=subscription_id,
        snapshot=snapshot,
        tenant=reading.tenant(event.at("meta", "custom_data")),
        occurred_at=data.moment("attributes", "updated_at"),
        is_live=_is_live(event.at("meta"), data.at("attributes")),
    )


def _snapshot(subscription: Document) -> Snapshot:
    about, price = subscription.at("attributes"), subscription.at("price")
    status = about.identifier("status")
    has_ended, is_cancelled = status == "expired", status == "cancelled"
    ends_at, renews_at = map(about.optional_moment, ("ends_at", "renews_at"))
    quantity = _quantity(subscription)
    return Snapshot(
        subscription_id=_id(subscription, "id"),
        customer_id=_id(about, "customer_id"),
        status=status,
        status_class=_CLASSES.get(status, StatusClass.UNKNOWN),
        items=(_item(subscription, quantity),),
        amount=reading.total([(_unit_price(price), quantity)]),
        billing_cycle=reading.billing_cycle(
            price, "renewal_interval_unit", "renewal_interval_quantity"
        ),
        start_date=about.moment("created_at"),
        trial_end=about.optional_moment("trial_ends_at"),
        current_period_end=(ends_at if has_ended or is_cancelled else None) or renews_at,
        collection_is_paused=about.value("pause", "mode") == "free",
        canceled_at=ends_at if has_ended else None,
        cancel_at_period_end=is_cancelled,
        changed_at=about.optional_moment("updated_at"),
        is_live=_is_live(about),
    )


def _item(subscription: Document, quantity: int | None) -> Item:
    """A subscription may have no item yet, such as in its trial."""
    variant = _id(subscription, "attributes", "variant_id")
    item_id = reading.whole(subscription, *_ITEM, "id")
    return Item(variant if item_id is None else str(item_id), variant, quantity)


def _quantity(subscription: Document) -> int | None:
    is_metered = subscription.flag(*_ITEM, "is_usage_based")
    return None if is_metered else reading.whole(subscription, *_ITEM, "quantity")


def _unit_price(price: Document) -> int | None:
    """Tiers and packages have no price of a unit, and some prices are the customer's choice."""
    is_plain = price.value("scheme") == "standard" and price.value("category") == "subscription"
    return reading.whole(price, "unit_price") if is_plain else None


def _price_path(subscription: Document) -> str | None:
    price_id = reading.whole(subscription, *_ITEM, "price_id")
    return None if price_id is None or subscription.has("price") else f"/v1/prices/{price_id}"


def _with_price(subscription: Document, answer: Document) -> Document:
    return Document({**subscription.members(), "price": answer.at("data", "attributes").members()})


def _id(holder: Document, *path: str) -> str:
    """Ids are numbers, and text in JSON:API's own members."""
    found = reading.whole(holder, *path)
    if found is None:
        raise Unreadable(f"{'.'.join(path)} is not an id")
    return str(found)


def _is_live(*holders: Document) -> bool | None:
    flags = (holder.flag("test_mode") for holder in holders)
    is_test = next((flag for flag in flags if flag is not None), None)
    return None if is_test is None else not is_test


PROVIDER = BillingProvider(
    name="lemonsqueezy",
    title="Lemon Squeezy",
    api_url="https://api.lemonsqueezy.com",
    headers=lambda key: {"Authorization": f"Bearer {key}", "Accept": "application/vnd.api+json"},
    reads_per_second=5,
    event=_event,
    event_type=lambda event: event.value("meta", "event_name"),
    event_id=lambda event: None,
    snapshot=_snapshot,
    customer=lambda customer: Customer(_id(customer, "id")),
    subscription_path=reading.below("/v1/subscriptions"),
    customer_path=reading.below("/v1/customers"),
    # A new subscription can move others only to later pages, so none is left out.
    page_path=reading.paged("/v1/subscriptions?page%5Bsize%5D=100", "page%5Bnumber%5D"),
    subscription_in=lambda answer: answer.at("data"),
    customer_in=lambda answer: answer.at("data"),
    more_path=_price_path,
    with_more=_with_price,
    page=reading.numbered_pages("data", "meta", "page", "lastPage"),
    event_types=tuple(f"subscription_{change}" for change in _CHANGES.split()),
)
