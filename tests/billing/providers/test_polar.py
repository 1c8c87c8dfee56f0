"""Polar's events and subscriptions."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from app.billing.providers.polar import PROVIDER
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.samples import changed, document, event, told

at = datetime.fromisoformat

ID = "7f0d4a6e-1111-4a11-8a11-000000000001"
CUSTOMER = "5d2c9f10-2222-4b22-9b22-000000000001"
STARTER = "0b7a1c52-6c1e-4f0a-9a53-000000000001"
TEAM = "0b7a1c52-6c1e-4f0a-9a53-000000000002"
CREATED = Snapshot(
    subscription_id=ID,
    customer_id=CUSTOMER,
    status="trialing",
    status_class=StatusClass.LIVE,
    tenant="acme",
    items=(Item(STARTER, STARTER, 5),),
    currency="EUR",
    amount=9500,
    billing_cycle="monthly",
    start_date=at("2026-11-01T08:00:00.120Z"),
    trial_end=at("2026-11-15T08:00:00.120Z"),
    current_period_end=at("2026-11-15T08:00:00.120Z"),
    changed_at=at("2026-11-01T08:00:00.120Z"),
)
ACTIVE = replace(
    CREATED,
    status="active",
    current_period_end=at("2026-12-15T08:00:00.120Z"),
    changed_at=at("2026-11-15T08:00:00.590Z"),
)
PLAN = replace(
    ACTIVE,
    items=(Item(TEAM, TEAM, 12),),
    amount=58800,
    trial_end=None,
    changed_at=at("2026-11-21T08:00:00.000010Z"),
)
PAST_DUE = replace(
    PLAN,
    status="past_due",
    status_class=StatusClass.PAST_DUE,
    current_period_end=at("2027-01-14T08:00:00.120Z"),
    changed_at=at("2026-12-15T08:00:00.770Z"),
)
CANCELED = replace(
    PAST_DUE,
    status="active",
    status_class=StatusClass.LIVE,
    canceled_at=at("2026-12-20T08:00:00Z"),
    cancel_at_period_end=True,
    cancel_reason="too_expensive",
    changed_at=at("2026-12-20T08:00:00Z"),
)
REVOKED = replace(
    CANCELED,
    status="canceled",
    status_class=StatusClass.ENDED,
    changed_at=at("2027-01-14T08:00:00.290Z"),
)
EVENTS = {
    "subscription.created": told(CREATED, at("2026-11-01T08:00:00.482003Z")),
    "subscription.active": told(ACTIVE, at("2026-11-15T08:00:00.604839Z")),
    "subscription.updated--plan": told(PLAN, at("2026-11-21T08:00:00.000011Z")),
    "subscription.past_due": told(PAST_DUE, at("2026-12-15T08:00:00.777000Z")),
    "subscription.canceled": told(CANCELED, at("2026-12-20T08:00:00.050000Z")),
    "subscription.revoked": told(REVOKED, at("2027-01-14T08:00:00.300000Z")),
    "customer.updated": BillingEvent(
        customer=Customer(CUSTOMER, external_id="acme"),
        occurred_at=at("2026-11-02T08:00:00.000007Z"),
    ),
}


def snapshot(**values: Any) -> Snapshot:
    """The subscription after a change of plan, with other values."""
    body = document("polar", "subscription.updated--plan")["data"]
    return PROVIDER.snapshot(changed(body, lambda body: body.update(values)))


class TestEvents:
    @pytest.mark.parametrize("name", ["created", "deleted", "state_changed"])
    def test_of_customers(self, name: str) -> None:
        body = changed(
            document("polar", "customer.updated"),
            lambda body: body.update(type=f"customer.{name}"),
        )

        assert PROVIDER.event(body).customer == Customer(CUSTOMER, external_id="acme")

    @pytest.mark.parametrize(
        "kind", ["order.paid", "customer_seat.claimed", "benefit_grant.created", 5]
    )
    def test_of_other_things_are_unwanted(self, kind: Any) -> None:
        with pytest.raises(Unwanted):
            PROVIDER.event(event({"type": kind, "timestamp": "2026-11-01T08:00:00Z", "data": {}}))


class TestStatuses:
    def test_of_a_revoked_subscription_that_is_unpaid_is_past_due(self) -> None:
        body = changed(
            document("polar", "subscription.revoked"),
            lambda body: body["data"].update(status="unpaid", cancel_at_period_end=False),
        )

        found = PROVIDER.event(body).snapshot

        assert found
        assert found.status_class is StatusClass.PAST_DUE
        assert not found.cancel_at_period_end


class TestItems:
    def test_without_seats_have_the_quantity_one(self) -> None:
        assert snapshot(seats=None).items == (Item(TEAM, TEAM, 1),)
        assert snapshot(seats=0).items == (Item(TEAM, TEAM, 0),)

    @pytest.mark.parametrize("amount", [None, "58800", 588.0, -1])
    def test_have_the_amount_of_the_subscription(self, amount: Any) -> None:
        assert snapshot(amount=amount).amount == (58800 if amount == "58800" else None)

    def test_have_an_interval_and_a_count(self) -> None:
        assert snapshot(recurring_interval_count=3).billing_cycle == "quarterly"
        assert snapshot(recurring_interval="decade").billing_cycle == ""


class TestTenant:
    @pytest.mark.parametrize(
        ("metadata", "external_id", "of_customer", "found"),
        [
            ({"tenant_id": "a"}, "b", {"tenant_id": "c"}, "a"),
            ({}, "b", {"tenant_id": "c"}, "c"),
            ({}, "b", {}, "b"),
            ({}, None, {"tenant_id": "c"}, "c"),
            ({}, "", {}, ""),
            ({}, "x" * 256, {}, ""),
        ],
    )
    def test_is_the_first_of_three(
        self, metadata: Any, external_id: Any, of_customer: Any, found: str
    ) -> None:
        customer = {"id": CUSTOMER, "external_id": external_id, "metadata": of_customer}

        assert snapshot(metadata=metadata, customer=customer).tenant == found


class TestMembers:
    def test_that_are_missing_have_a_default(self) -> None:
        body = {"id": ID, "customer_id": CUSTOMER, "product_id": TEAM, "status": "active"}

        found = PROVIDER.snapshot(event({**body, "created_at": "2026-11-01T08:00:00Z"}))

        assert found == Snapshot(
            subscription_id=ID,
            customer_id=CUSTOMER,
            status="active",
            status_class=StatusClass.LIVE,
            items=(Item(TEAM, TEAM, 1),),
            amount=None,
            billing_cycle="",
            start_date=at("2026-11-01T08:00:00Z"),
            changed_at=at("2026-11-01T08:00:00Z"),
        )

    def test_of_a_cancellation_at_once(self) -> None:
        found = snapshot(status="canceled", canceled_at=None, ended_at="2026-12-01T00:00:00Z")

        assert found.canceled_at == at("2026-12-01T00:00:00Z")
        assert not found.cancel_at_period_end
        assert not found.auto_renew
