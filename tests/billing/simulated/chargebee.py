"""A simulated Chargebee: no signature, no null, dues instead of a status, and deleted subscriptions."""

import base64
import json
from datetime import datetime
from email.message import Message

from tests.billing.simulated.base import (
    Customer,
    Event,
    Json,
    Line,
    Simulated,
    Status,
    Subscription,
)

KINDS = {
    "create": ("subscription_created",),
    "activate": ("subscription_activated", "invoice_generated", "payment_succeeded"),
    "renew": ("subscription_renewed", "invoice_generated", "payment_succeeded"),
    "fail": ("payment_failed", "invoice_updated"),
    "recover": ("payment_succeeded", "invoice_updated"),
    "pause": ("subscription_paused",),
    "resume": ("subscription_resumed",),
    "cancel_at_period_end": ("subscription_cancellation_scheduled",),
    "withdraw_cancellation": ("subscription_scheduled_cancellation_removed",),
    "end": ("subscription_cancelled",),
    "change": ("subscription_changed",),
}


class Chargebee(Simulated):
    """Its secret is the user and the password of the webhook, with a colon between them."""

    name = "chargebee"
    statuses = {
        Status.INCOMPLETE: "future",
        Status.TRIALING: "in_trial",
        Status.ACTIVE: "active",
        Status.PAST_DUE: "active",
        Status.PAUSED: "paused",
        Status.ENDED: "cancelled",
    }
    left_out = frozenset({"pause_collection", "resume_collection"})
    has_metered_prices = True
    can_be_due_and_cancelled = False
    api_path = "/api/v2"

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.deleted: set[str] = set()

    def delete(self, subscription: Subscription) -> None:
        """The API then answers 404, and lists it only where deleted ones are asked for."""
        with self.lock:
            if not subscription.has_ended:
                self.apply("end", subscription)
            self.deleted.add(subscription.id)
            subscription.changed_at = self._tick()
            self._tell("subscription_deleted", subscription)

    def id_of(self, kind: str, number: int) -> str:
        return {"customer": "cust-", "subscription": "Azq", "event": "ev_"}[kind] + str(number)

    def price_id(self, price: str) -> str:
        return f"{price}-EUR-monthly"

    def period_end(self, subscription: Subscription) -> datetime | None:
        has_none = subscription.status in (Status.INCOMPLETE, Status.TRIALING)
        return None if has_none else subscription.period_end

    def kinds_of(self, change: str) -> tuple[str, ...]:
        return KINDS[change]

    def customer_kind(self, change: str) -> str:
        return f"customer_{change.replace('updated', 'changed')}"

    def write_customer(self, customer: Customer) -> Json:
        return {
            "id": customer.id,
            "auto_collection": "on",
            "created_at": seconds(customer.created_at),
            "updated_at": seconds(customer.changed_at),
            "resource_version": milliseconds(customer.changed_at),
            "deleted": customer.is_deleted,
            "object": "customer",
            **meta_data(customer.tenant),
        }

    def write_subscription(self, subscription: Subscription) -> Json:
        """The subscription and its customer, as answers, lists and events have them."""
        is_future = subscription.status is Status.INCOMPLETE
        will_end = subscription.ends_with_period and not subscription.has_ended
        found = {
            "id": subscription.id,
            "customer_id": subscription.customer.id,
            "status": "non_renewing" if will_end else self.statuses[subscription.status],
            "billing_period": 1,
            "billing_period_unit": "month",
            "currency_code": "EUR",
            "created_at": seconds(subscription.created_at),
            "started_at": None if is_future else seconds(subscription.created_at),
            "start_date": seconds(subscription.created_at) if is_future else None,
            "trial_end": seconds(subscription.trial_end),
            "current_term_end": seconds(self.period_end(subscription)),
            "cancelled_at": seconds(subscription.period_end if will_end else subscription.ended_at),
            "cancel_schedule_created_at": seconds(subscription.canceled_at if will_end else None),
            "updated_at": seconds(subscription.changed_at),
            "resource_version": milliseconds(subscription.changed_at),
            "deleted": subscription.id in self.deleted,
            "due_invoices_count": int(subscription.status is Status.PAST_DUE),
            "has_scheduled_changes": False,
            "object": "subscription",
            "subscription_items": [
                item(self.price_id(line.price), line, is_plan=place == 0)
                for place, line in enumerate(subscription.lines)
            ],
            **meta_data(subscription.tenant),
        }
        return {
            "subscription": {name: value for name, value in found.items() if value is not None},
            "customer": self.write_customer(subscription.customer),
        }

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        if isinstance(of, Customer):
            content = {"customer": self.write_customer(of)}
        else:
            content = self.write_subscription(of)
        if isinstance(of, Subscription) and not kind.startswith("subscription_"):
            content["invoice"] = {"id": f"INV-{id_}", "subscription_id": of.id}
        return {
            "id": id_,
            "occurred_at": seconds(self.now),
            "source": "admin_console",
            "object": "event",
            "api_version": "v2",
            "content": content,
            "event_type": kind,
            "webhook_status": "scheduled",
        }

    def sign(self, event: Event, now: float) -> dict[str, str]:
        return {"Authorization": basic(self.secret)}

    def is_allowed(self, headers: Message) -> bool:
        return headers.get("Authorization") == basic(f"{self.api_key}:")

    def error(self, status: int) -> Json:
        codes = {404: "resource_not_found", 429: "api_request_limit_exceeded"}
        code = codes.get(status, "internal_error")
        return {"message": code, "api_error_code": code, "http_status_code": status}

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        match path.removeprefix(self.api_path).strip("/").split("/"):
            case ["subscriptions"]:
                return self._list(query)
            case ["subscriptions", id_] if id_ in self.subscriptions and id_ not in self.deleted:
                return self.write_subscription(self.subscriptions[id_])
            case ["customers", id_] if id_ in self.customers:
                customer = self.customers[id_]
                return None if customer.is_deleted else {"customer": self.write_customer(customer)}
            case _:
                return None

    def _list(self, query: dict[str, str]) -> Json:
        """The newest first. An offset is the place of the last one before it."""
        has_deleted = query.get("include_deleted") == "true"
        before = json.loads(query["offset"])[0] if "offset" in query else 10**9
        shown = [
            one
            for one in reversed(self.in_order)
            if one.number < int(before) and (has_deleted or one.id not in self.deleted)
        ]
        page, has_more = self.page(shown, 0, min(int(query.get("limit", 10)), 100))
        offset = {"next_offset": json.dumps([str(page[-1].number), "offset"])} if has_more else {}
        return {"list": [self.write_subscription(one) for one in page], **offset}


def item(price: str, line: Line, *, is_plan: bool) -> Json:
    kind = {"item_price_id": price, "item_type": "plan" if is_plan else "addon"}
    if line.quantity is None:
        return kind
    amounts = {"unit_price": line.amount, "amount": line.amount * line.quantity}
    return {**kind, "quantity": line.quantity, **amounts, "object": "subscription_item"}


def seconds(at: datetime | None) -> int | None:
    return int(at.timestamp()) if at else None


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def meta_data(tenant: str) -> Json:
    return {"meta_data": {"tenant_id": tenant}} if tenant else {}


def basic(credentials: str) -> str:
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"
