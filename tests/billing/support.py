"""Snapshots of a billing provider, and giving them to the mirror as its callers do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Flask

from app.billing import mirror
from app.billing.mirror import Outcome
from app.billing.snapshots import Customer, Item, Snapshot
from app.core.db import tenancy
from app.core.db.retries import run
from app.plans.models import PlanPrice
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass
from tests import database
from tests.factories import save

SECRET = "whsec_dGhpcyBpcyBhIHNlY3JldCBmb3IgdGVzdHMgb25seQ=="
PAST_DUE = {"status": "past_due", "status_class": StatusClass.PAST_DUE}
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(
    subscription_id="sub_1",
    customer_id="cus_1",
    status="active",
    status_class=StatusClass.LIVE,
    items=(Item("si_1", "price_growth"),),
    currency="EUR",
    amount=4900,
    billing_cycle="monthly",
    start_date=START,
    current_period_end=START + timedelta(days=30),
)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def snapshot(**values: Any) -> Snapshot:
    """A live subscription of ``cus_1`` at ``price_growth``."""
    return replace(SNAPSHOT, **values)


def seated(quantity: int | None, **values: Any) -> Snapshot:
    """A subscription of ``price_growth`` in this quantity."""
    return snapshot(items=(Item("si_1", "price_growth", quantity),), **values)


def ended(**values: Any) -> Snapshot:
    defaults = {"status": "canceled", "status_class": StatusClass.ENDED}
    return snapshot(**{**defaults, **values})


class Mirror:
    """The mirror, each call in a transaction of its own."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def apply(
        self, one: Snapshot, minutes: float = 0, *, provider: str = "stripe", **values: Any
    ) -> Outcome:
        """Apply a payload of this time, or a read with ``is_read=True``."""
        given = {"at": at(minutes), "is_read": False, **values}
        return self.run(lambda: mirror.apply(provider, one, **given)).outcome

    def note(
        self, customer_id: str, tenant: str = "", external_id: str = "", *, at: Any = None
    ) -> Outcome:
        customer = Customer(customer_id, tenant, external_id)
        return self.run(lambda: mirror.note_customer("stripe", customer, at))

    def run(self, work: Any) -> Any:
        """What ``work`` returns, in the platform's scope."""

        def in_scope() -> Any:
            tenancy.enter(tenancy.PLATFORM)
            return work()

        with self._app.app_context():
            return run(in_scope)


def stored(**equal: Any) -> Subscription:
    """The only subscription with these values."""
    return database.row(Subscription, **equal)


def map_price(price_id: str, plan_name: str, **values: Any) -> PlanPrice:
    """A price whose mapping is applied to all subscriptions."""
    key = {"provider": "stripe", "price_id": price_id}
    return save(PlanPrice, **{**key, "plan_name": plan_name, "is_pending": False, **values})
