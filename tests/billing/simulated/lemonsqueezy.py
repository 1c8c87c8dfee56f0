"""A simulated Lemon Squeezy: one variant, its price apart, and the tenant in events only."""

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
    "create": ("created", "updated"),
    "activate": ("updated", "payment_success"),
    "renew": ("updated", "payment_success"),
    "fail": ("updated", "payment_failed"),
    "recover": ("updated", "payment_recovered"),
    "pause": ("updated", "paused"),
    "resume": ("updated", "unpaused"),
    "cancel_at_period_end": ("updated", "cancelled"),
    "withdraw_cancellation": ("updated", "resumed"),
    "end": ("updated", "expired"),
    "change": ("updated", "plan_changed"),
}


class LemonSqueezy(Simulated):
    name = "lemonsqueezy"
    statuses = {
        Status.TRIALING: "on_trial",
        Status.ACTIVE: "active",
        Status.PAST_DUE: "past_due",
        Status.UNPAID: "unpaid",
        Status.PAUSED: "paused",
        Status.ENDED: "expired",
    }
    left_out = frozenset({"pause_collection", "resume_collection"})
    most_lines = 1
    has_metered_prices = True
    can_be_due_and_cancelled = False
    currency = ""
    has_metadata = False
    is_live = True

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.variants: dict[str, int] = {}
        self.prices: dict[tuple[str, int, bool], int] = {}

    def id_of(self, kind: str, number: int) -> str:
        return str({"customer": 660000, "subscription": 880000, "event": 0}[kind] + number)

    def price_id(self, price: str) -> str:
        """The variant. It has another price when its amount changes."""
        return str(self.variants.setdefault(price, 501001 + len(self.variants)))

    def period_end(self, subscription: Subscription) -> datetime | None:
        return subscription.ended_at if subscription.has_ended else subscription.period_end

    def kinds_of(self, change: str) -> tuple[str, ...]:
        return tuple(f"subscription_{kind}" for kind in KINDS.get(change, ("updated",)))

    def write_customer(self, customer: Customer) -> Json:
        about = {"created_at": moment(customer.created_at), "test_mode": not self.is_live}
        return {"type": "customers", "id": customer.id, "attributes": about}

    def write_subscription(self, subscription: Subscription) -> Json:
        (line,) = subscription.lines
        is_cancelled = subscription.ends_with_period and not subscription.has_ended
        is_on_trial = subscription.status is Status.TRIALING and not is_cancelled
        end = moment(self.period_end(subscription))
        attributes = {
            "store_id": 4242,
            "customer_id": int(subscription.customer.id),
            "product_id": 500100,
            "variant_id": int(self.price_id(line.price)),
            "status": "cancelled" if is_cancelled else self.statuses[subscription.status],
            "pause": {"mode": "void"} if subscription.status is Status.PAUSED else None,
            "cancelled": is_cancelled or subscription.has_ended,
            "trial_ends_at": moment(subscription.trial_end if is_on_trial else None),
            "first_subscription_item": self._item(subscription, line),
            "urls": {"customer_portal": f"https://portal.example/?signature={len(self.events)}"},
            "renews_at": end,
            "ends_at": end if is_cancelled or subscription.has_ended else None,
            "created_at": moment(subscription.created_at),
            "updated_at": moment(subscription.changed_at),
            "test_mode": not self.is_live,
        }
        return {"type": "subscriptions", "id": subscription.id, "attributes": attributes}

    def _item(self, subscription: Subscription, line: Line) -> Json:
        is_metered = line.quantity is None
        price = (line.price, line.amount, is_metered)
        return {
            "id": 990000 + subscription.number,
            "subscription_id": int(subscription.id),
            "price_id": self.prices.setdefault(price, 601001 + len(self.prices)),
            "quantity": 0 if is_metered else line.quantity,
            "is_usage_based": is_metered,
        }

    def write_event(self, id_: str, kind: str, of: Subscription | Customer) -> Json:
        assert isinstance(of, Subscription)
        meta = {"event_name": kind, "test_mode": not self.is_live, "webhook_id": "5c1f0c2e"}
        if of.tenant:
            meta["custom_data"] = {"tenant_id": of.tenant}
        return {
            "meta": meta,
            "data": self._invoice(id_, of) if "payment" in kind else self.write_subscription(of),
        }

    def _invoice(self, id_: str, subscription: Subscription) -> Json:
        attributes = {
            "subscription_id": int(subscription.id),
            "customer_id": int(subscription.customer.id),
            "currency": "EUR",
            "updated_at": moment(self.now),
            "test_mode": not self.is_live,
        }
        return {"type": "subscription-invoices", "id": f"155{id_}", "attributes": attributes}

    def _tell(self, kind: str, of: Subscription | Customer) -> None:
        """Customers have no events."""
        if isinstance(of, Subscription):
            super()._tell(kind, of)

    def sign(self, event: Event, now: float) -> dict[str, str]:
        return {
            "X-Signature": hmac.new(self.secret.encode(), event.body, hashlib.sha256).hexdigest()
        }

    def error(self, status: int) -> Json:
        return {
            "errors": [{"status": str(status), "title": {404: "Not Found"}.get(status, "Error")}]
        }

    def answer(self, path: str, query: dict[str, str]) -> Json | None:
        prices = {str(id_): price for price, id_ in self.prices.items()}
        match path.strip("/").split("/"):
            case ["v1", "subscriptions"]:
                return self._list(query)
            case ["v1", "subscriptions", id_] if id_ in self.subscriptions:
                return {"data": self.write_subscription(self.subscriptions[id_])}
            case ["v1", "customers", id_] if id_ in self.customers:
                return {"data": self.write_customer(self.customers[id_])}
            case ["v1", "prices", id_] if id_ in prices:
                return {"data": self._price(id_, *prices[id_])}
            case _:
                return None

    def _price(self, id_: str, price: str, amount: int, is_metered: bool) -> Json:
        attributes = {
            "variant_id": int(self.price_id(price)),
            "category": "subscription",
            "scheme": "standard",
            "usage_aggregation": "sum" if is_metered else None,
            "unit_price": None if is_metered else amount,
            "unit_price_decimal": str(amount) if is_metered else None,
            "renewal_interval_unit": "month",
            "renewal_interval_quantity": 1,
        }
        return {"type": "prices", "id": id_, "attributes": attributes}

    def _list(self, query: dict[str, str]) -> Json:
        """The newest first, so that a new one moves the others."""
        size, number = min(int(query.get("page[size]", 10)), 100), int(query.get("page[number]", 1))
        page, _ = self.page(self.in_order[::-1], (number - 1) * size, size)
        last = max(1, -(-len(self.in_order) // size))
        numbers = {"currentPage": number, "lastPage": last, "total": len(self.in_order)}
        return {"meta": {"page": numbers}, "data": [self.write_subscription(one) for one in page]}
