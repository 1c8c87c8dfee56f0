"""A simulated Polar: one product with seats, ids of events in a header, and numbered pages."""

import base64
import hashlib
import hmac
from uuid import UUID

from tests.billing.simulated.base import (
    Customer,
    Event,
    Json,
    Simulated,
    Status,
    Subscription,
    moment,
)

KINDS = {
    "create": ("created",),
    "activate": ("updated", "active"),
    "recover": ("updated", "active"),
    "fail": ("updated", "past_due"),
    "give_up": ("updated", "revoked"),
    "pause": ("updated", "paused"),
    "resume": ("updated", "resumed"),
    "cancel_at_period_end": ("updated", "canceled"),
    "withdraw_cancellation": ("updated", "uncanceled"),
    "end": ("updated", "canceled", "revoked"),
}


class Polar(Simulated):
    """Its secret is the key as it is, ``whsec_`` included, as of endpoints before September 2026."""

    name = "polar"
    statuses = {status: status.value for status in Status} | {Status.ENDED: "canceled"}
    left_out = frozenset({"pause_collection", "resume_collection"})
    most_lines = 1

    def id_of(self, kind: str, number: int) -> str:
        family = {"customer": 1, "subscription": 2, "event": 3}[kind]
        return str(UUID(int=family << 64 | number, version=4))

    def price_id(self, price: str) -> str:
        """The product, because a price is replaced when its amount changes."""
        return f"product_{price}"

    def kinds_of(self, change: str) -> tuple[str, ...]:
        return tuple(f"subscription.{name}" for name in KINDS.get(change, ("updated",)))

    def write_customer(self, customer: Customer) -> Json:
        return {
            "id": customer.id,
            "created_at": moment(customer.created_at),
            "modified_at": moment(customer.changed_at),
            "metadata": {"tenant_id": customer.tenant} if customer.tenant else {},
            "external_id": None,
            "deleted_at": moment(customer.changed_at if customer.is_deleted else None),
        }

    def write_subscription(self, subscription: Subscription) -> Json:
        (line,) = subscription.lines
        is_changed = subscription.changed_at != subscription.created_at
        return {
            "id": subscription.id,
            "created_at": moment(subscription.created_at),
            "modified_at": moment(subscription.changed_at) if is_changed else None,
            "amount": subscription.amount,
            "currency": "eur",
            "recurring_interval": "month",
            "recurring_interval_count": 1,
            "status": self.statuses[subscription.status],
            "current_period_start": moment(subscription.period_start),
            "current_period_end": moment(subscription.period_end),
            "trial_start": moment(subscription.trial_end and subscription.created_at),
            "trial_end": moment(subscription.trial_end),
            "cancel_at_period_end": subscription.ends_with_period,
            "canceled_at": moment(subscription.canceled_at),
            "started_at": moment(subscription.created_at),
            "ended_at": moment(subscription.ended_at),
            "customer_id": subscription.customer.id,
            "product_id": self.price_id(line.price),
            "seats": line.quantity,
            "metadata": {"tenant_id": subscription.tenant} if subscription.tenant else {},
            "customer": self.write_customer(subscription.customer),
            "pending_update": None,
        }

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        data = self.write_customer(of) if isinstance(of, Customer) else self.write_subscription(of)
        return {"type": kind, "timestamp": moment(self.now), "data": data}

    def sign(self, event: Event, now: float) -> dict[str, str]:
        content = f"{event.id}.{int(now)}.".encode() + event.body
        signature = hmac.digest(self.secret.encode(), content, hashlib.sha256)
        return {
            "webhook-id": event.id,
            "webhook-timestamp": str(int(now)),
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }

    def error(self, status: int) -> Json:
        return {"error": {404: "ResourceNotFound"}.get(status, "Error"), "detail": str(status)}

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        match path.strip("/").split("/"):
            case ["v1", "subscriptions"]:
                return self._list(query)
            case ["v1", "subscriptions", id_] if id_ in self.subscriptions:
                return self.write_subscription(self.subscriptions[id_])
            case ["v1", "customers", id_] if id_ in self.customers:
                return self.write_customer(self.customers[id_])
            case _:
                return None

    def _list(self, query: dict[str, str]) -> Json:
        """The newest first, as the real one without ``sorting``."""
        shown = self.in_order if query.get("sorting") == "started_at" else self.in_order[::-1]
        size = min(int(query.get("limit", 10)), 100)
        page, _ = self.page(shown, (int(query.get("page", 1)) - 1) * size, size)
        pagination = {"total_count": len(shown), "max_page": -(-len(shown) // size)}
        return {"items": [self.write_subscription(one) for one in page], "pagination": pagination}
