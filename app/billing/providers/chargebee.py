"""Chargebee: subscriptions, customers, and the payments and invoices that change what is due.

Chargebee signs nothing, so a payload is not trusted. A member without a value is absent. The customer
stands beside its subscription: in an answer, in a list and in the ``content`` of an event.
https://apidocs.chargebee.com/docs/api/events lists the events.
"""

from __future__ import annotations

import re
from base64 import b64encode
from decimal import Decimal
from functools import partial

from app.billing.providers import reading
from app.billing.providers.provider import BillingProvider, PageOf
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import MAX_ID, Document, Unwanted
from app.subscriptions.statuses import StatusClass, class_of

_CUSTOMERS = re.compile("customer_(created|changed|deleted|moved_in|moved_out)")
_DUES = re.compile("payment_(failed|succeeded|refunded)|invoice_(generated|updated|deleted)")
_NO_DIGITS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"  # of minor units
_THREE_DIGITS = "BHD IQD JOD KWD LYD OMR TND"
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def _event(event: Document) -> BillingEvent:
    kind, content = str(event.value("event_type")), event.at("content")
    told = partial(BillingEvent, occurred_at=event.epoch("occurred_at"))
    if _CUSTOMERS.fullmatch(kind):
        return told(customer=_customer(content.at("customer")))
    if kind.startswith("subscription_") and content.has("subscription"):
        snapshot = _snapshot(content)
        return told(subscription_id=snapshot.subscription_id, snapshot=snapshot)
    if kind.startswith("subscription_ramp_") or _DUES.fullmatch(kind):
        paths = ((name, "subscription_id") for name in content.members())
        return told(subscription_id=reading.subscription_of(content, *paths))
    raise Unwanted("not about a subscription or a customer")


def _snapshot(content: Document) -> Snapshot:
    subscription, customer = content.at("subscription"), content.at("customer")
    status = subscription.identifier("status")
    status_class = _class_of(status, subscription, customer)
    has_ended = status_class is StatusClass.ENDED
    currency = reading.currency(subscription, "currency_code")
    digits = 0 if currency in _NO_DIGITS.split() else 3 if currency in _THREE_DIGITS.split() else 2
    items = _items(subscription)
    recurring = [item for item in items if item.value("item_type") != "charge"]
    time = subscription.optional_epoch
    return Snapshot(
        subscription_id=subscription.identifier("id"),
        customer_id=subscription.identifier("customer_id"),
        status=status,
        status_class=status_class,
        tenant=reading.tenant(*_metadata(subscription), *_metadata(customer)),
        items=tuple(map(_item, items)),
        currency=currency,
        amount=reading.total((_number(i, "amount", digits), 1) for i in recurring),
        billing_cycle=reading.billing_cycle(subscription, "billing_period_unit", "billing_period"),
        start_date=time("started_at") or time("start_date") or subscription.epoch("created_at"),
        trial_end=time("trial_end"),
        current_period_end=time("current_term_end"),
        # Before the end, ``cancelled_at`` is the time at which the subscription will end.
        canceled_at=time("cancelled_at" if has_ended else "cancel_schedule_created_at"),
        cancel_at_period_end=status == "non_renewing" and not has_ended,
        cancel_reason=subscription.first_text(("cancel_reason_code",), ("cancel_reason",))[:MAX_ID],
        changed_at=time("resource_version") or time("updated_at"),
    )


def _class_of(status: str, subscription: Document, customer: Document) -> StatusClass:
    """Dunning is not a status. The subscription's ``auto_collection`` overrides the customer's."""
    if subscription.flag("deleted"):
        return StatusClass.ENDED
    is_due = reading.whole(subscription, "due_invoices_count")
    collection = subscription.text("auto_collection") or customer.text("auto_collection")
    if status == "active" and is_due and collection != "off":
        return StatusClass.PAST_DUE
    return class_of(status)


def _items(subscription: Document) -> list[Document]:
    """The plan first. Product catalog 1.0 has it in ``plan_id``, ``plan_quantity`` and so on."""
    members = subscription.members().items()
    old_plan = {name[5:]: value for name, value in members if name.startswith("plan_")}
    old_items = [Document(old_plan), *subscription.objects("addons")] if old_plan else []
    items = subscription.objects("subscription_items") or old_items
    return sorted(items, key=lambda item: item.value("item_type") != "plan")


def _item(item: Document) -> Item:
    """Items have no id of their own: their price is unique."""
    price = reading.word(item, "item_price_id") or reading.word(item, "id")
    return Item(id=price, price=price, quantity=_number(item, "quantity"))


def _number(item: Document, name: str, digits: int = 0) -> int | None:
    """A whole number; with multi-decimal pricing, the nearest to text that is in major units."""
    found, exact = reading.whole(item, name), reading.word(item, f"{name}_in_decimal")
    is_exact = found is None and _DECIMAL.fullmatch(exact)
    return round(Decimal(exact).scaleb(digits)) if is_exact else found


def _customer(customer: Document) -> Customer:
    return Customer(customer.identifier("id"), reading.tenant(*_metadata(customer)))


def _metadata(holder: Document) -> tuple[Document, Document]:
    return holder.at("meta_data"), Document({"tenant_id": holder.value("cf_tenant_id")})


PROVIDER = BillingProvider(
    name="chargebee",
    title="Chargebee",
    api_url="",
    headers=lambda key: {"Authorization": f"Basic {b64encode(f'{key}:'.encode()).decode()}"},
    reads_per_second=2.5,
    event=_event,
    event_type=lambda event: event.value("event_type"),
    event_id=lambda event: event.value("id"),
    snapshot=_snapshot,
    customer=_customer,
    subscription_path=reading.below("/subscriptions"),
    customer_path=reading.below("/customers"),
    page_path=reading.paged("/subscriptions?limit=100&include_deleted=true", "offset"),
    customer_in=lambda answer: answer.at("customer"),
    page=lambda page, _: PageOf(reading.listed(page, "list"), page.text("next_offset") or None),
    has_trusted_payloads=False,
)
