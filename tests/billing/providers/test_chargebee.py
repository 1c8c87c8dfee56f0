"""Chargebee's events and objects: the recorded ones, and what its documentation leaves open."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.billing.providers.chargebee import PROVIDER
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.samples import changed, document, event, told


def at(day: str, microsecond: int = 0) -> datetime:
    return datetime.fromisoformat(day).replace(microsecond=microsecond, tzinfo=UTC)


STARTER = (Item("starter-EUR-monthly", "starter-EUR-monthly", 5),)
TEAM = (
    Item("team-EUR-monthly", "team-EUR-monthly", 12),
    Item("support-EUR-monthly", "support-EUR-monthly", 1),
)
CREATED = Snapshot(
    subscription_id="AzqYbTInvented01",
    customer_id="cust-acme",
    status="in_trial",
    status_class=StatusClass.LIVE,
    tenant="acme",
    items=STARTER,
    currency="EUR",
    amount=9500,
    billing_cycle="monthly",
    start_date=at("2026-11-01T08:00"),
    trial_end=at("2026-11-15T08:00"),
    changed_at=at("2026-11-01T08:00", 210_000),
)
ACTIVATED = replace(
    CREATED,
    status="active",
    current_period_end=at("2026-12-15T08:00"),
    changed_at=at("2026-11-15T08:00", 33_000),
)
CHANGED = replace(ACTIVATED, items=TEAM, amount=68_700, changed_at=at("2026-11-21T08:00", 871_000))
SCHEDULED = replace(
    CHANGED,
    status="non_renewing",
    current_period_end=at("2027-01-14T08:00"),
    canceled_at=at("2026-12-20T08:00"),
    cancel_at_period_end=True,
    changed_at=at("2026-12-20T08:00", 4_000),
)
CANCELLED = replace(
    SCHEDULED,
    status="cancelled",
    status_class=StatusClass.ENDED,
    canceled_at=at("2027-01-14T08:00"),
    cancel_at_period_end=False,
    changed_at=at("2027-01-14T08:00", 9_000),
)
EVENTS = {
    "subscription_created": told(CREATED, at("2026-11-01T08:00")),
    "subscription_activated": told(ACTIVATED, at("2026-11-15T08:00")),
    "subscription_changed": told(CHANGED, at("2026-11-21T08:00")),
    "subscription_cancellation_scheduled": told(SCHEDULED, at("2026-12-20T08:00")),
    "subscription_cancelled": told(CANCELLED, at("2027-01-14T08:00")),
    "payment_failed": BillingEvent(
        subscription_id="AzqYbTInvented01", occurred_at=at("2026-12-15T08:00:40")
    ),
    "customer_changed": BillingEvent(
        customer=Customer("cust-acme", "acme"), occurred_at=at("2026-11-02T08:00")
    ),
}


def subscription(**members: Any) -> Document:
    """An active subscription of the API with other members; None takes one away."""
    content = document("chargebee", "subscription_activated")["content"]
    content["subscription"] |= members
    known = {name: value for name, value in content["subscription"].items() if value is not None}
    return Document({**content, "subscription": known})


def of_event(kind: str, content: Any) -> Document:
    return event({"event_type": kind, "occurred_at": 1797321640, "content": content})


class TestEvents:
    @pytest.mark.parametrize(
        "kind",
        ["subscription_renewed", "subscription_of_a_kind_to_come"],
    )
    def test_of_any_kind_about_a_subscription_have_its_state(self, kind: str) -> None:
        body = document("chargebee", "subscription_activated") | {"event_type": kind}

        assert PROVIDER.event(event(body)).snapshot == ACTIVATED

    def test_of_a_deletion_end_the_subscription(self) -> None:
        def delete(body: Any) -> None:
            body["event_type"] = "subscription_deleted"
            body["content"]["subscription"]["deleted"] = True

        body = document("chargebee", "subscription_activated")
        found = PROVIDER.event(changed(body, delete)).snapshot

        assert found is not None
        assert found.status_class is StatusClass.ENDED
        assert not found.auto_renew

    @pytest.mark.parametrize(
        ("kind", "content"),
        [
            ("invoice_updated", {"invoice": {"id": "1", "subscription_id": "s-1"}}),
            (
                "payment_succeeded",
                {"transaction": {"id": "t"}, "invoice": {"subscription_id": "s-1"}},
            ),
            ("payment_refunded", {"credit_note": {"subscription_id": "s-1"}}),
            (
                "subscription_ramp_applied",
                {"subscription_ramp": {"id": "r", "subscription_id": "s-1"}},
            ),
        ],
    )
    def test_that_name_a_subscription_have_it_read(self, kind: str, content: Any) -> None:
        found = PROVIDER.event(of_event(kind, content))

        assert (found.subscription_id, found.snapshot) == ("s-1", None)

    @pytest.mark.parametrize(
        ("kind", "content"),
        [
            ("invoice_updated", {"invoice": {"id": "1", "customer_id": "c"}}),
            ("payment_failed", {"transaction": {"id": "t"}}),
            ("payment_source_added", {"customer": {"id": "c"}}),
            ("card_expired", {"card": {"customer_id": "c"}}),
            ("customer_business_entity_changed", {"customer": {"id": "c"}}),
            ("plan_created", {"plan": {"id": "p"}}),
            ("subscription_entitlements_updated", {"subscription_entitlements_updated_detail": {}}),
            (None, {}),
            ("", None),
        ],
    )
    def test_about_something_else_are_unwanted(self, kind: Any, content: Any) -> None:
        with pytest.raises(Unwanted):
            PROVIDER.event(of_event(kind, content))

    @pytest.mark.parametrize("name", ["id", "status", "customer_id", "created_at"])
    def test_without_what_a_subscription_has_are_unreadable(self, name: str) -> None:
        def cut(body: Any) -> None:
            members = body["content"]["subscription"]
            for gone in (name, *(["started_at"] if name == "created_at" else [])):
                members.pop(gone)

        with pytest.raises(Unreadable):
            PROVIDER.event(changed(document("chargebee", "subscription_changed"), cut))

    def test_without_a_time_are_unreadable(self) -> None:
        body = document("chargebee", "customer_changed") | {"occurred_at": "2026-11-01"}

        with pytest.raises(Unreadable):
            PROVIDER.event(event(body))


class TestStates:
    @pytest.mark.parametrize(
        ("dues", "collection", "of_customer", "status_class"),
        [
            (1, "on", "on", "past_due"),
            (3, None, "on", "past_due"),
            (1, None, None, "past_due"),
            (1, "on", "off", "past_due"),
            (1, "off", "on", "live"),
            (1, None, "off", "live"),
            (0, "on", "on", "live"),
            (None, "on", "on", "live"),
            ("many", "on", "on", "live"),
        ],
    )
    def test_that_are_active_with_dues_are_past_due_if_they_are_collected(
        self, dues: Any, collection: Any, of_customer: Any, status_class: str
    ) -> None:
        found = subscription(due_invoices_count=dues, auto_collection=collection)
        customer = {"id": "cust-acme", "auto_collection": of_customer}

        snapshot = PROVIDER.snapshot(Document({**found.members(), "customer": customer}))

        assert snapshot.status_class == status_class

    @pytest.mark.parametrize("status", ["non_renewing", "in_trial", "paused", "cancelled"])
    def test_other_than_active_do_not_become_past_due_by_dues(self, status: str) -> None:
        with_dues = PROVIDER.snapshot(subscription(status=status, due_invoices_count=2))
        without = PROVIDER.snapshot(subscription(status=status, due_invoices_count=0))

        assert with_dues.status_class == without.status_class

    def test_of_the_future_start_later(self) -> None:
        found = PROVIDER.snapshot(
            subscription(
                status="future",
                started_at=None,
                activated_at=None,
                current_term_end=None,
                start_date=1797321600,
            )
        )

        assert found.start_date == at("2026-12-15T08:00")
        assert found.current_period_end is None

    def test_are_ordered_by_the_version_then_by_the_time_of_the_change(self) -> None:
        versioned = PROVIDER.snapshot(subscription())
        old = PROVIDER.snapshot(subscription(resource_version=None))
        bare = PROVIDER.snapshot(subscription(resource_version=None, updated_at=None))

        assert versioned.changed_at == at("2026-11-15T08:00", 33_000)
        assert old.changed_at == at("2026-11-15T08:00")
        assert bare.changed_at is None

    def test_that_have_ended_say_why(self) -> None:
        by_chargebee = subscription(status="cancelled", cancel_reason="not_paid")
        by_people = subscription(status="cancelled", cancel_reason_code="Budget")

        assert PROVIDER.snapshot(by_chargebee).cancel_reason == "not_paid"
        assert PROVIDER.snapshot(by_people).cancel_reason == "Budget"


class TestItems:
    def test_begin_with_the_plan(self) -> None:
        addon = {"item_price_id": "support", "item_type": "addon", "quantity": 1, "amount": 900}
        plan = {"item_price_id": "team", "item_type": "plan", "quantity": 3, "amount": 3000}

        found = PROVIDER.snapshot(subscription(subscription_items=[addon, plan]))

        assert found.items == (Item("team", "team", 3), Item("support", "support", 1))
        assert found.amount == 3900

    def test_that_are_charged_once_are_in_no_period(self) -> None:
        plan = {"item_price_id": "team", "item_type": "plan", "quantity": 3, "amount": 3000}
        setup = {"item_price_id": "setup", "item_type": "charge", "quantity": 1, "amount": 5000}

        found = PROVIDER.snapshot(subscription(subscription_items=[plan, setup]))

        assert found.amount == 3000
        assert len(found.items) == 2

    def test_of_product_catalog_1_are_a_plan_and_addons(self) -> None:
        found = PROVIDER.snapshot(
            subscription(
                subscription_items=None,
                plan_id="team",
                plan_quantity=12,
                plan_unit_price=4900,
                plan_amount=58_800,
                plan_free_quantity=0,
                addons=[{"id": "support", "quantity": 1, "unit_price": 9900, "amount": 9900}],
            )
        )

        assert found.items == (Item("team", "team", 12), Item("support", "support", 1))
        assert found.amount == 68_700

    @pytest.mark.parametrize(
        ("currency", "exact", "amount"),
        [
            ("EUR", "1234.505", 123_450),
            ("eur", "12", 1200),
            ("JPY", "1234.0000", 1234),
            ("KWD", "1.2345", 1234),
            ("EUR", "1e400", None),
            ("EUR", "NaN", None),
            ("EUR", "-5", None),
            ("EUR", "9" * 400, None),
            ("EUR", 5, None),
            ("EUR", None, None),
        ],
    )
    def test_with_decimals_are_in_major_units(
        self, currency: str, exact: Any, amount: int | None
    ) -> None:
        plan = {
            "item_price_id": "team",
            "item_type": "plan",
            "quantity_in_decimal": "12.0000",
            "unit_price_in_decimal": "1.02875",
            "amount_in_decimal": exact,
        }

        found = PROVIDER.snapshot(subscription(subscription_items=[plan], currency_code=currency))

        assert found.amount == amount
        assert found.items == (Item("team", "team", 12),)
        assert found.currency == currency.upper()

    def test_that_are_metered_have_no_quantity(self) -> None:
        plan = {"item_price_id": "usage", "item_type": "plan"}

        found = PROVIDER.snapshot(subscription(subscription_items=[plan]))

        assert found.items == (Item("usage", "usage", None),)
        assert found.amount is None

    def test_may_be_missing(self) -> None:
        found = PROVIDER.snapshot(subscription(subscription_items=None, currency_code=None))

        assert (found.items, found.amount, found.currency) == ((), None, "")


class TestTenant:
    @pytest.mark.parametrize(
        ("of_subscription", "of_customer", "tenant"),
        [
            ({"meta_data": {"tenant_id": "a"}, "cf_tenant_id": "b"}, {"cf_tenant_id": "d"}, "a"),
            ({"meta_data": {"plan": "x"}, "cf_tenant_id": "b"}, {"cf_tenant_id": "d"}, "b"),
            ({}, {"meta_data": {"tenant_id": "c"}, "cf_tenant_id": "d"}, "c"),
            ({}, {"cf_tenant_id": "d"}, "d"),
            ({"meta_data": "text"}, {"meta_data": {"tenant_id": 42}}, "42"),
            ({}, {}, ""),
        ],
    )
    def test_is_the_subscriptions_then_its_customers(
        self, of_subscription: Any, of_customer: Any, tenant: str
    ) -> None:
        found = subscription(**{"meta_data": None, **of_subscription}).members()

        snapshot = PROVIDER.snapshot(Document({**found, "customer": {"id": "c", **of_customer}}))

        assert snapshot.tenant == tenant
        assert PROVIDER.customer(Document({"id": "c", **of_customer})).tenant in (
            "c",
            "d",
            "42",
            "",
        )
