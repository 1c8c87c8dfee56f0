"""A simulated Paddle: no id of an item, amounts in text, and an active moment before a failure."""

import hashlib
import hmac
from datetime import datetime

from tests.billing.simulated.base import (
    Customer,
    Event,
    Json,
    Line,
    Simulated,
    Status,
    Subscription,
    moment,
)

KINDS = {
    "create": ("created",),
    "activate": ("updated", "activated"),
    "fail": ("updated", "past_due"),
    "pause": ("updated", "paused"),
    "resume": ("updated", "resumed"),
    "end": ("updated", "canceled"),
}


class Paddle(Simulated):
    name = "paddle"
    statuses = {
        Status.TRIALING: "trialing",
        Status.ACTIVE: "active",
        Status.PAST_DUE: "past_due",
        Status.PAUSED: "paused",
        Status.ENDED: "canceled",
    }
    left_out = frozenset({"pause_collection", "resume_collection"})
    renews_before_failing = True

    def id_of(self, kind: str, number: int) -> str:
        prefix = {"customer": "ctm", "subscription": "sub", "event": "evt"}[kind]
        return f"{prefix}_{number:026d}"

    def price_id(self, price: str) -> str:
        return f"pri_{price}"

    def period_end(self, subscription: Subscription) -> datetime | None:
        has_none = subscription.status in (Status.PAUSED, Status.ENDED)
        return None if has_none else subscription.period_end

    def kinds_of(self, change: str) -> tuple[str, ...]:
        return tuple(f"subscription.{name}" for name in KINDS.get(change, ("updated",)))

    def write_customer(self, customer: Customer) -> Json:
        return {
            "id": customer.id,
            "status": "archived" if customer.is_deleted else "active",
            "custom_data": custom_data(customer.tenant),
            "created_at": moment(customer.created_at),
            "updated_at": moment(customer.changed_at),
        }

    def customer_kind(self, change: str) -> str:
        """A customer is archived, and never deleted."""
        return "customer.created" if change == "created" else "customer.updated"

    def write_subscription(self, subscription: Subscription) -> Json:
        has_period = self.period_end(subscription) is not None
        start, end = moment(subscription.period_start), moment(subscription.period_end)
        change = {"action": "cancel", "effective_at": end, "resume_at": None}
        is_scheduled = subscription.ends_with_period and has_period
        return {
            "id": subscription.id,
            "status": self.statuses[subscription.status],
            "customer_id": subscription.customer.id,
            "currency_code": "EUR",
            "created_at": moment(subscription.created_at),
            "updated_at": moment(subscription.changed_at),
            "started_at": moment(subscription.created_at),
            "canceled_at": moment(subscription.ended_at),
            "collection_mode": "automatic",
            "billing_cycle": {"interval": "month", "frequency": 1},
            "current_billing_period": {"starts_at": start, "ends_at": end} if has_period else None,
            "scheduled_change": change if is_scheduled else None,
            "items": [self._item(subscription, line) for line in subscription.lines],
            "custom_data": custom_data(subscription.tenant),
        }

    def _item(self, subscription: Subscription, line: Line) -> Json:
        is_trialing = subscription.status is Status.TRIALING
        trial = {
            "starts_at": moment(subscription.created_at),
            "ends_at": moment(subscription.trial_end),
        }
        return {
            "status": "trialing" if is_trialing else "active",
            "quantity": line.quantity,
            "recurring": True,
            "trial_dates": trial if is_trialing else None,
            "price": {
                "id": self.price_id(line.price),
                "unit_price": {"amount": str(line.amount), "currency_code": "EUR"},
                "billing_cycle": {"interval": "month", "frequency": 1},
            },
        }

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        return {
            "event_id": id_,
            "event_type": kind,
            "occurred_at": moment(self.now),
            "notification_id": id_.replace("evt", "ntf"),
            "data": self.write_customer(of)
            if isinstance(of, Customer)
            else self.write_subscription(of),
        }

    def sign(self, event: Event, now: float) -> dict[str, str]:
        content = f"{int(now)}:".encode() + event.body
        signature = hmac.new(self.secret.encode(), content, hashlib.sha256).hexdigest()
        return {"Paddle-Signature": f"ts={int(now)};h1={signature}"}

    def error(self, status: int) -> Json:
        code = {404: "entity_not_found", 429: "too_many_requests"}.get(status, "internal_error")
        return {"error": {"type": "request_error", "code": code}, "meta": {"request_id": "1"}}

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        match path.strip("/").split("/"):
            case ["subscriptions"]:
                return self._list(query)
            case ["subscriptions", id_] if id_ in self.subscriptions:
                return {"data": self.write_subscription(self.subscriptions[id_]), "meta": {}}
            case ["customers", id_] if id_ in self.customers:
                return {"data": self.write_customer(self.customers[id_]), "meta": {}}
            case _:
                return None

    def _list(self, query: dict[str, str]) -> Json:
        after = self.subscriptions.get(query.get("after", ""))
        size = min(int(query.get("per_page", 50)), 200)
        page, has_more = self.page(self.in_order, after.number if after else 0, size)
        pagination: Json = {
            "per_page": size,
            "has_more": has_more,
            "estimated_total": len(self.in_order),
        }
        pagination["next"] = f"{self.url}/subscriptions?after={page[-1].id if page else ''}"
        return {
            "data": [self.write_subscription(one) for one in page],
            "meta": {"request_id": "1", "pagination": pagination},
        }


def custom_data(tenant: str) -> Json | None:
    return {"tenant_id": tenant} if tenant else None
