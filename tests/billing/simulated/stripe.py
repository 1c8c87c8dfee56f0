"""A simulated Stripe: times of whole seconds, the first ten items, and the newest first in lists."""

import hashlib
import hmac
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from tests.billing.simulated.base import (
    Customer,
    Event,
    Json,
    Line,
    Simulated,
    Status,
    Subscription,
)

NESTED = 10
KINDS = {
    "create": ("created",),
    "pause": ("updated", "paused"),
    "resume": ("updated", "resumed"),
    "end": ("deleted",),
}


class Stripe(Simulated):
    """Events of one change have the same second; of those of one second, no order is known."""

    name = "stripe"
    statuses = {status: status.value for status in Status} | {Status.ENDED: "canceled"}
    """Status has Stripe's words, except for this."""
    has_metered_prices = True
    is_live = True

    def id_of(self, kind: str, number: int) -> str:
        prefix = {"customer": "cus", "subscription": "sub", "event": "evt"}[kind]
        return f"{prefix}_{number:014d}"

    def price_id(self, price: str) -> str:
        return f"price_{price}"

    def kinds_of(self, change: str) -> tuple[str, ...]:
        return tuple(f"customer.subscription.{name}" for name in KINDS.get(change, ("updated",)))

    def write_customer(self, customer: Customer) -> Json:
        return {
            "id": customer.id,
            "object": "customer",
            "created": seconds(customer.created_at),
            "livemode": self.is_live,
            "metadata": metadata(customer.tenant),
        }

    def write_subscription(self, subscription: Subscription) -> Json:
        items = self.items(subscription)
        return {
            "id": subscription.id,
            "object": "subscription",
            "customer": subscription.customer.id,
            "status": self.statuses[subscription.status],
            "created": seconds(subscription.created_at),
            "start_date": seconds(subscription.created_at),
            "livemode": self.is_live,
            "currency": "eur",
            "metadata": metadata(subscription.tenant),
            "items": {
                "object": "list",
                "data": items[:NESTED],
                "has_more": len(items) > NESTED,
                "total_count": len(items),
                "url": f"/v1/subscription_items?subscription={subscription.id}",
            },
            "trial_start": seconds(subscription.trial_end and subscription.created_at),
            "trial_end": seconds(subscription.trial_end),
            "cancel_at_period_end": subscription.ends_with_period,
            "cancel_at": seconds(subscription.ends_with_period and subscription.period_end),
            "canceled_at": seconds(subscription.canceled_at),
            "ended_at": seconds(subscription.ended_at),
            "pause_collection": {"behavior": "void", "resumes_at": None}
            if subscription.collection_is_paused
            else None,
            "schedule": None,
            "test_clock": None,
        }

    def items(self, subscription: Subscription) -> list[Json]:
        return [
            {
                "id": f"si_{subscription.number:010d}{place:04d}",
                "object": "subscription_item",
                "current_period_start": seconds(subscription.period_start),
                "current_period_end": seconds(subscription.period_end),
                "price": self._price(line),
                **({} if line.quantity is None else {"quantity": line.quantity}),
            }
            for place, line in enumerate(subscription.lines)
        ]

    def _price(self, line: Line) -> Json:
        is_metered = line.quantity is None
        return {
            "id": self.price_id(line.price),
            "object": "price",
            "lookup_key": line.price,
            "unit_amount": None if is_metered else line.amount,
            "recurring": {
                "interval": "month",
                "interval_count": 1,
                "usage_type": "metered" if is_metered else "licensed",
            },
        }

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        found = self.write_customer(of) if isinstance(of, Customer) else self.write_subscription(of)
        return {
            "id": id_,
            "object": "event",
            "api_version": "2026-09-30.endive",
            "created": seconds(self.now),
            "data": {"object": found},
            "livemode": self.is_live,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": kind,
        }

    def sign(self, event: Event, now: float) -> dict[str, str]:
        content = f"{int(now)}.".encode() + event.body
        signature = hmac.new(self.secret.encode(), content, hashlib.sha256).hexdigest()
        return {"Stripe-Signature": f"t={int(now)},v1={signature}"}

    def error(self, status: int) -> Json:
        code = {404: "resource_missing", 429: "rate_limit"}.get(status, "api_error")
        return {"error": {"type": "invalid_request_error", "code": code}}

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        match path.strip("/").split("/"):
            case ["v1", "subscriptions"]:
                older = self.in_order
                if after := query.get("starting_after"):
                    number = self.subscriptions[after].number
                    older = older[: bisect_left(older, number, key=lambda one: one.number)]
                shown = (
                    one
                    for one in reversed(older)
                    if query.get("status") == "all" or one.status is not Status.ENDED
                )
                return self._list(shown, query, self.write_subscription)
            case ["v1", "subscription_items"] if query["subscription"] in self.subscriptions:
                items = self.items(self.subscriptions[query["subscription"]])[::-1]
                ids = [item["id"] for item in items]
                start = ids.index(query["starting_after"]) + 1 if "starting_after" in query else 0
                return self._list(items[start:], query, lambda item: item)
            case ["v1", "subscriptions", id_] if id_ in self.subscriptions:
                return self.write_subscription(self.subscriptions[id_])
            case ["v1", "customers", id_] if id_ in self.customers:
                if self.customers[id_].is_deleted:
                    return {"id": id_, "object": "customer", "deleted": True}
                return self.write_customer(self.customers[id_])
            case _:
                return None

    def _list(
        self, found: Iterable[Any], query: dict[str, str], write: Callable[[Any], Json]
    ) -> Json:
        size = min(int(query.get("limit", 10)), 100)
        page, has_more = self.page(list(islice(found, size + 1)), 0, size)
        return {"object": "list", "data": [write(one) for one in page], "has_more": has_more}


def seconds(at: datetime | Literal[False] | None) -> int | None:
    return int(at.timestamp()) if at else None


def metadata(tenant: str) -> Json:
    return {"tenant_id": tenant} if tenant else {}
