"""Lemon Squeezy's events and objects: the recorded ones, and what its documentation leaves open."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.billing.providers.lemonsqueezy import PROVIDER
from app.billing.snapshots import BillingEvent, Item, Snapshot
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.samples import changed, document, event, told


def at(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


CREATED = Snapshot(
    subscription_id="880001",
    customer_id="660001",
    status="on_trial",
    status_class=StatusClass.LIVE,
    items=(Item("990001", "501001", 5),),
    amount=None,
    billing_cycle="",
    start_date=at("2026-11-01T08:00"),
    trial_end=at("2026-11-15T08:00"),
    current_period_end=at("2026-11-15T08:00"),
    changed_at=at("2026-11-01T08:00:00.120"),
    is_live=True,
)
ACTIVE = replace(
    CREATED,
    status="active",
    trial_end=None,
    current_period_end=at("2026-12-15T08:00"),
    changed_at=at("2026-11-15T08:01:01.503112"),
)
TEAM = replace(
    ACTIVE,
    items=(Item("990001", "501002", 12),),
    changed_at=at("2026-11-21T08:00:00.000077"),
)
PAST_DUE = replace(
    TEAM,
    status="past_due",
    status_class=StatusClass.PAST_DUE,
    current_period_end=at("2026-12-18T08:00"),  # the next attempt
    changed_at=at("2026-12-15T08:00:31.900001"),
)
CANCELLED = replace(
    TEAM,
    status="cancelled",
    current_period_end=at("2027-01-14T08:00"),
    cancel_at_period_end=True,
    changed_at=at("2026-12-20T08:00:00.000006"),
)
EXPIRED = replace(
    CANCELLED,
    status="expired",
    status_class=StatusClass.ENDED,
    canceled_at=at("2027-01-14T08:00"),
    cancel_at_period_end=False,
    changed_at=at("2027-01-14T08:01"),
)
SNAPSHOTS = {
    "subscription_created": CREATED,
    "subscription_updated--active": ACTIVE,
    "subscription_plan_changed": TEAM,
    "subscription_updated--past_due": PAST_DUE,
    "subscription_cancelled": CANCELLED,
    "subscription_expired": EXPIRED,
}
EVENTS = {name: told(one, one.changed_at, "acme") for name, one in SNAPSHOTS.items()} | {
    "subscription_payment_failed": BillingEvent(
        subscription_id="880001",
        tenant="acme",
        occurred_at=at("2026-12-15T08:00:30.000004"),
        is_live=True,
    )
}
PRICE = {
    "category": "subscription",
    "scheme": "standard",
    "unit_price": 4900,
    "package_size": 1,
    "tiers": None,
    "renewal_interval_unit": "month",
    "renewal_interval_quantity": 1,
}


def subscription(**attributes: Any) -> Document:
    """An active subscription of the API with other attributes."""
    data = document("lemonsqueezy", "subscription_plan_changed")["data"]
    return Document({**data, "attributes": {**data["attributes"], **attributes}})


def with_price(found: Document, **attributes: Any) -> Document:
    answer = {"data": {"type": "prices", "id": "601002", "attributes": {**PRICE, **attributes}}}
    return PROVIDER.with_more(found, Document(answer))


class TestEvents:
    @pytest.mark.parametrize("body", [{}, {"data": []}, {"data": None, "meta": "x"}, {"meta": {}}])
    def test_without_data_are_unwanted(self, body: Any) -> None:
        with pytest.raises(Unwanted):
            PROVIDER.event(event(body))

    @pytest.mark.parametrize(
        "cut",
        [
            lambda data: data.pop("id"),
            lambda data: data.update(id="sub_1"),
            lambda data: data["attributes"].pop("status"),
            lambda data: data["attributes"].pop("variant_id"),
            lambda data: data["attributes"].pop("customer_id"),
            lambda data: data["attributes"].update(customer_id="9" * 300),
            lambda data: data["attributes"].pop("created_at"),
            lambda data: data["attributes"].pop("updated_at"),
            lambda data: data.update(attributes=[]),
            lambda data: data.update(type="subscription-invoices"),
        ],
    )
    def test_without_what_a_subscription_has_are_unreadable(
        self, cut: Callable[[Any], object]
    ) -> None:
        body = document("lemonsqueezy", "subscription_created")

        with pytest.raises(Unreadable):
            PROVIDER.event(changed(body, lambda whole: cut(whole["data"])))

    @pytest.mark.parametrize(
        ("meta", "attributes", "is_live"),
        [
            (False, False, True),
            (True, True, False),
            (True, False, False),
            (None, True, False),
            (None, False, True),
            ("no", None, None),
        ],
    )
    def test_say_whether_they_are_live(self, meta: Any, attributes: Any, is_live: Any) -> None:
        def write(body: Any) -> None:
            body["meta"]["test_mode"] = meta
            body["data"]["attributes"]["test_mode"] = attributes

        found = PROVIDER.event(changed(document("lemonsqueezy", "subscription_created"), write))

        assert found.is_live is is_live

    @pytest.mark.parametrize(
        ("custom", "tenant"),
        [
            ({"tenant_id": "acme"}, "acme"),
            ({"tenant_id": 42}, "42"),
            ({"user_id": "1"}, ""),
            ([], ""),
            (None, ""),
        ],
    )
    def test_have_the_tenant_of_the_checkout(self, custom: Any, tenant: str) -> None:
        def write(body: Any) -> None:
            body["meta"]["custom_data"] = custom

        found = PROVIDER.event(changed(document("lemonsqueezy", "subscription_created"), write))

        assert found.tenant == tenant
        assert found.snapshot == CREATED


class TestStates:
    @pytest.mark.parametrize(("mode", "is_served"), [("free", True), ("void", False)])
    def test_that_are_paused_are_free_or_not_served(self, mode: str, is_served: bool) -> None:
        found = PROVIDER.snapshot(subscription(status="paused", pause={"mode": mode}))

        assert found.status_class is StatusClass.PAUSED
        assert found.collection_is_paused is is_served

    def test_that_were_unpaid_end_without_a_cancellation_before(self) -> None:
        found = PROVIDER.snapshot(
            subscription(status="expired", cancelled=False, ends_at="2027-02-01T00:00:00.000000Z")
        )

        assert found.canceled_at == found.current_period_end == at("2027-02-01")
        assert not found.auto_renew


class TestItem:
    def test_may_be_missing_in_a_trial(self) -> None:
        found = subscription(status="on_trial", first_subscription_item=None)

        assert PROVIDER.snapshot(found).items == (Item("501002", "501002", None),)
        assert PROVIDER.more_path(found) is None

    def test_that_is_metered_has_no_quantity(self) -> None:
        item = {"id": 990001, "price_id": 601002, "quantity": 0, "is_usage_based": True}
        found = PROVIDER.snapshot(with_price(subscription(first_subscription_item=item)))

        assert found.items == (Item("990001", "501002", None),)
        assert found.amount is None


class TestPrice:
    def test_is_read_once(self) -> None:
        found = subscription()

        completed = with_price(found)

        assert PROVIDER.more_path(found) == "/v1/prices/601002"
        assert PROVIDER.more_path(completed) is None
        assert PROVIDER.snapshot(completed) == replace(TEAM, amount=58_800, billing_cycle="monthly")

    @pytest.mark.parametrize(
        "attributes",
        [
            {"scheme": "volume", "unit_price": None, "tiers": [{"last_unit": "inf"}]},
            {"scheme": "graduated"},
            {"scheme": "package", "package_size": 10},
            {"category": "pwyw"},
            {"unit_price": None, "unit_price_decimal": "0.5", "usage_aggregation": "sum"},
            {"unit_price": "free"},
        ],
    )
    def test_of_another_scheme_leaves_the_amount_open(self, attributes: Any) -> None:
        found = PROVIDER.snapshot(with_price(subscription(), **attributes))

        assert found.amount is None
        assert found.billing_cycle == "monthly"

    @pytest.mark.parametrize("answer", [{}, {"data": []}, {"data": {"attributes": None}}, {"x": 1}])
    def test_that_is_rubbish_is_not_read_again(self, answer: Any) -> None:
        found = PROVIDER.with_more(subscription(), Document(answer))

        assert PROVIDER.more_path(found) is None
        assert PROVIDER.snapshot(found) == TEAM
