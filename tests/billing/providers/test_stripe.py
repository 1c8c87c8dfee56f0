"""Stripe's events and subscriptions."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.billing.providers.stripe import PROVIDER
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.samples import changed, document, event, told


def at(day: str, hour: int = 8) -> datetime:
    return datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC)


STARTER = Item("si_QtAcme01", "price_1QtstarterEUR00000001", 5, "starter_monthly")
TEAM = Item("si_QtAcme01", "price_1QtteamEUR0000000002", 12, "team_monthly")
CALLS = Item("si_QtAcme02", "price_1QtcallsEUR00000004", None, "calls_metered")

CREATED = Snapshot(
    subscription_id="sub_1QtInventedAcme0001",
    customer_id="cus_QtAcme0001",
    status="trialing",
    status_class=StatusClass.LIVE,
    tenant="acme",
    items=(STARTER,),
    currency="EUR",
    amount=9500,
    billing_cycle="monthly",
    start_date=at("2026-11-01"),
    trial_end=at("2026-11-15"),
    current_period_end=at("2026-11-15"),
    is_live=True,
)
ACTIVE = replace(CREATED, status="active", current_period_end=at("2026-12-15"))
PLAN = replace(ACTIVE, items=(TEAM, CALLS), amount=None)
PAST_DUE = replace(
    PLAN,
    status="past_due",
    status_class=StatusClass.PAST_DUE,
    current_period_end=at("2027-01-14"),
)
CANCEL_SCHEDULED = replace(
    PAST_DUE,
    status="active",
    status_class=StatusClass.LIVE,
    canceled_at=at("2026-12-20"),
    cancel_at_period_end=True,
    cancel_reason="too_expensive",
)
DELETED = replace(CANCEL_SCHEDULED, status="canceled", status_class=StatusClass.ENDED)
EVENTS = {
    "customer.subscription.created": told(CREATED, at("2026-11-01")),
    "customer.subscription.trial_will_end": told(CREATED, at("2026-11-12")),
    "customer.subscription.updated--active": told(ACTIVE, at("2026-11-15")),
    "customer.subscription.updated--plan": told(PLAN, at("2026-11-21")),
    "customer.subscription.updated--past_due": told(PAST_DUE, at("2026-12-15", 9)),
    "customer.subscription.updated--cancel_scheduled": told(CANCEL_SCHEDULED, at("2026-12-20")),
    "customer.subscription.deleted": told(DELETED, at("2027-01-14")),
    "customer.updated": BillingEvent(
        customer=Customer("cus_QtAcme0001", "acme"), occurred_at=at("2026-11-02"), is_live=True
    ),
}


def subscription(change: Callable[[Any], object] = lambda body: None) -> Document:
    """The subscription after a change of plan, after ``change``."""
    return changed(
        document("stripe", "customer.subscription.updated--plan")["data"]["object"], change
    )


def snapshot(**values: Any) -> Snapshot:
    return PROVIDER.snapshot(subscription(lambda body: body.update(values)))


def with_items(*items: Any, **values: Any) -> Snapshot:
    return snapshot(items={"object": "list", "data": list(items), **values})


def item(number: int, **values: Any) -> dict[str, Any]:
    price = {"id": f"price_{number}", "unit_amount": 100, "lookup_key": None}
    price["recurring"] = {"interval": "year", "interval_count": 1}
    return {"id": f"si_{number}", "price": price | values.pop("price", {}), "quantity": 2, **values}


class TestEvents:
    @pytest.mark.parametrize(
        "of_subscription",
        [
            {"parent": {"subscription_details": {"subscription": "sub_1"}}},
            {"parent": {"subscription_details": {"subscription": {"id": "sub_1"}}}},
            {"subscription": "sub_1"},
        ],
    )
    @pytest.mark.parametrize("name", ["paid", "payment_failed", "marked_uncollectible", "overdue"])
    def test_of_invoices_name_the_subscription(self, name: str, of_subscription: Any) -> None:
        body = {"type": f"invoice.{name}", "created": 1793520000, "livemode": False}
        body["data"] = {"object": {"id": "in_1", "object": "invoice", **of_subscription}}

        assert PROVIDER.event(event(body)) == BillingEvent(
            subscription_id="sub_1", occurred_at=at("2026-11-01"), is_live=False
        )

    @pytest.mark.parametrize(
        "schedule",
        [{"subscription": "sub_1"}, {"subscription": None, "released_subscription": "sub_1"}],
    )
    def test_of_schedules_name_the_subscription(self, schedule: Any) -> None:
        body = {"type": "subscription_schedule.released", "created": 1793520000}
        body["data"] = {"object": {"id": "sub_sched_1", **schedule}}

        assert PROVIDER.event(event(body)).subscription_id == "sub_1"

    @pytest.mark.parametrize(
        "body",
        [
            {"type": "invoice.paid", "data": {"object": {"id": "in_1", "subscription": None}}},
            {"type": "subscription_schedule.created", "data": {"object": {"subscription": None}}},
            {"type": "charge.refunded", "data": {"object": {"id": "ch_1"}}},
            {"type": "customer.discount.created", "data": {"object": {"id": "di_1"}}},
            {"object": "v2.core.event", "type": "v1.billing.meter.error_report_triggered"},
            {"type": ["customer.created"]},
        ],
    )
    def test_of_no_subscription_are_unwanted(self, body: Any) -> None:
        with pytest.raises(Unwanted):
            PROVIDER.event(event({"created": 1793520000, **body}))

    def test_of_a_connected_account_are_unwanted(self) -> None:
        body = document("stripe", "customer.subscription.created")

        with pytest.raises(Unwanted, match="this account"):
            PROVIDER.event(changed(body, lambda body: body.update(account="acct_1")))

    def test_of_test_mode_say_so(self) -> None:
        body = changed(
            document("stripe", "customer.subscription.created"),
            lambda body: (
                body.update(livemode=False),
                body["data"]["object"].update(livemode=False),
            ),
        )

        found = PROVIDER.event(body)

        assert found.is_live is False
        assert found.snapshot
        assert found.snapshot.is_live is False

    def test_without_a_time_is_unreadable(self) -> None:
        body = document("stripe", "customer.subscription.created")

        with pytest.raises(Unreadable, match="created"):
            PROVIDER.event(changed(body, lambda body: body.update(created="now")))


class TestStatuses:
    def test_a_paused_collection_stays_live(self) -> None:
        found = snapshot(pause_collection={"behavior": "void", "resumes_at": None})

        assert found.status_class is StatusClass.LIVE
        assert found.collection_is_paused


class TestItems:
    def test_of_a_removed_item_nothing_is_left(self) -> None:
        found = with_items(item(1), item(2, deleted=True))

        assert found.items == (Item("si_1", "price_1", 2, ""),)
        assert found.amount == 200

    def test_add_up(self) -> None:
        found = with_items(item(1), item(2, quantity=3, price={"unit_amount": 50}))

        assert found.amount == 350
        assert found.billing_cycle == "annual"

    @pytest.mark.parametrize(
        "second",
        [
            {"price": {"unit_amount": None, "unit_amount_decimal": "0.5"}},
            {"price": {"unit_amount": 5, "recurring": {"usage_type": "metered"}}, "quantity": None},
            {"price": {"transform_quantity": {"divide_by": 10, "round": "up"}}},
        ],
    )
    def test_that_have_no_known_amount_leave_the_amount_unknown(self, second: Any) -> None:
        found = with_items(item(1), item(2, **second))

        assert found.amount is None
        assert len(found.items) == 2

    @pytest.mark.parametrize(
        ("currency", "sent", "amount"),
        [("jpy", 500, 500), ("isk", 50_000, 500), ("ugx", 50_000, 500), ("mga", 500, 50_000)],
    )
    def test_have_their_amount_in_minor_units(self, currency: str, sent: int, amount: int) -> None:
        items = {"data": [item(1, price={"unit_amount": sent}, quantity=1)]}

        assert snapshot(items=items, currency=currency).amount == amount

    def test_that_are_cut_have_no_known_amount(self) -> None:
        assert with_items(item(1), has_more=True).amount is None

    def test_without_a_price_stay(self) -> None:
        assert with_items({"id": "si_1", "quantity": 1}).items == (Item("si_1", "", 1),)

    def test_can_be_none(self) -> None:
        found = with_items()

        assert found.items == ()
        assert found.amount is None
        assert found.billing_cycle == ""


class TestPeriods:
    def test_are_those_of_the_items_and_the_first_end_counts(self) -> None:
        items = item(1, current_period_end=1797321600), item(2, current_period_end=1794729600)

        found = snapshot(items={"data": list(items)}, current_period_end=1799913600)

        assert found.current_period_end == at("2026-11-15")

    def test_are_the_subscriptions_in_older_versions(self) -> None:
        found = snapshot(items={"data": [item(1)]}, current_period_end=1799913600)

        assert found.current_period_end == at("2027-01-14")

    def test_without_a_start_begin_when_it_was_created(self) -> None:
        assert snapshot(start_date=None).start_date == at("2026-11-01")


class TestCancellation:
    def test_at_a_date_within_the_period_is_at_its_end(self) -> None:
        found = snapshot(cancel_at=1797321600, canceled_at=1795248000)

        assert found.cancel_at_period_end
        assert not found.auto_renew
        assert found.canceled_at == at("2026-11-21")

    def test_at_a_date_in_a_later_period_still_renews(self) -> None:
        found = snapshot(cancel_at=1799913600, canceled_at=1795248000)

        assert not found.cancel_at_period_end
        assert found.auto_renew

    def test_at_once_has_the_time_of_the_end_if_no_other_is_known(self) -> None:
        found = snapshot(status="canceled", canceled_at=None, ended_at=1795248000)

        assert found.canceled_at == at("2026-11-21")
        assert not found.cancel_at_period_end

    def test_has_the_customers_words_as_its_reason(self) -> None:
        reasons = {"comment": None, "feedback": None, "reason": "payment_failed"}

        assert snapshot(cancellation_details=reasons).cancel_reason == "payment_failed"
        reasons |= {"feedback": "unused", "comment": "We moved."}
        assert snapshot(cancellation_details=reasons).cancel_reason == "We moved."


class TestTenant:
    def test_of_an_expanded_customer_counts_after_the_subscriptions_own(self) -> None:
        customer = {"id": "cus_1", "metadata": {"tenant_id": "of-customer"}}

        found = snapshot(customer=customer)
        without = snapshot(customer=customer, metadata={})

        assert found.customer_id == "cus_1"
        assert found.tenant == "acme"
        assert without.tenant == "of-customer"


class TestReading:
    def test_of_a_whole_subscription_needs_no_more(self) -> None:
        assert PROVIDER.more_path(subscription()) is None

    def test_completes_the_items_from_the_start_of_their_list(self) -> None:
        items = [item(number) for number in range(1, 121)]
        nested = items[30:40]  # in an order of their own
        found = subscription(lambda body: body.update(items={"data": nested, "has_more": True}))

        paths, after = [], 0
        while path := PROVIDER.more_path(found):
            paths.append(path.partition("?")[2])
            answer = {"data": items[after : after + 100], "has_more": after + 100 < len(items)}
            found, after = PROVIDER.with_more(found, event(answer)), after + 100

        first = "limit=100&subscription=sub_1QtInventedAcme0001"
        assert paths == [first, f"{first}&starting_after=si_100"]
        assert sorted(one.id for one in PROVIDER.snapshot(found).items) == sorted(
            one["id"] for one in items
        )
        assert PROVIDER.snapshot(found).amount == 120 * 200

    def test_ends_if_the_items_repeat(self) -> None:
        items = {"data": [item(1)], "has_more": True}
        found = subscription(lambda body: body.update(items=items))

        found = PROVIDER.with_more(found, event(items))

        assert PROVIDER.more_path(found) is None

    def test_refuses_rubbish_instead_of_items(self) -> None:
        found = subscription(lambda body: body["items"].update(has_more=True))

        with pytest.raises(Unreadable):
            PROVIDER.with_more(found, event({"error": "no"}))
