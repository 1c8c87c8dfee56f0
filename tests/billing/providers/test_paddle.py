"""Paddle's events and subscriptions."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from app.billing.providers.paddle import PROVIDER
from app.billing.snapshots import BillingEvent, Customer, Item, Snapshot
from app.inbox.providers.payloads import Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.samples import changed, document, event, told

at = datetime.fromisoformat

STARTER = Item("pri_01jd0starter00000000000001", "pri_01jd0starter00000000000001", 5)
TEAM = Item("pri_01jd0team00000000000000002", "pri_01jd0team00000000000000002", 12)
CREATED = Snapshot(
    subscription_id="sub_01jd0acme00000000000000001",
    customer_id="ctm_01jd0acme00000000000000001",
    status="trialing",
    status_class=StatusClass.LIVE,
    tenant="acme",
    items=(STARTER,),
    currency="EUR",
    amount=9500,
    billing_cycle="monthly",
    start_date=at("2026-11-01T08:00:00.120Z"),
    trial_end=at("2026-11-15T08:00:00.120Z"),
    current_period_end=at("2026-11-15T08:00:00.120Z"),
    changed_at=at("2026-11-01T08:00:00.120Z"),
)
ACTIVATED = replace(
    CREATED,
    status="active",
    trial_end=None,
    current_period_end=at("2026-12-15T08:00:00.120Z"),
    changed_at=at("2026-11-15T08:00:00.650Z"),
)
PLAN = replace(ACTIVATED, items=(TEAM,), amount=58800, changed_at=at("2026-11-21T08:00:00.041Z"))
PAST_DUE = replace(
    PLAN,
    status="past_due",
    status_class=StatusClass.PAST_DUE,
    current_period_end=at("2027-01-14T08:00:00.120Z"),
    changed_at=at("2026-12-15T08:00:00.900Z"),
)
CANCEL_SCHEDULED = replace(
    PAST_DUE,
    status="active",
    status_class=StatusClass.LIVE,
    cancel_at_period_end=True,
    changed_at=at("2026-12-20T08:00:00.010Z"),
)
CANCELED = replace(
    CANCEL_SCHEDULED,
    status="canceled",
    status_class=StatusClass.ENDED,
    current_period_end=None,
    canceled_at=at("2027-01-14T08:00:00.390Z"),
    cancel_at_period_end=False,
    changed_at=at("2027-01-14T08:00:00.390Z"),
)
EVENTS = {
    "subscription.created": told(CREATED, at("2026-11-01T08:00:00.480213Z")),
    "subscription.activated": told(ACTIVATED, at("2026-11-15T08:00:00.702551Z")),
    "subscription.updated--plan": told(PLAN, at("2026-11-21T08:00:00.091004Z")),
    "subscription.past_due": told(PAST_DUE, at("2026-12-15T08:00:00.930077Z")),
    "subscription.updated--cancel_scheduled": told(
        CANCEL_SCHEDULED, at("2026-12-20T08:00:00.055120Z")
    ),
    "subscription.canceled": told(CANCELED, at("2027-01-14T08:00:00.400019Z")),
    "customer.updated": BillingEvent(
        customer=Customer("ctm_01jd0acme00000000000000001", "acme"),
        occurred_at=at("2026-11-02T08:00:00.005120Z"),
    ),
}


def snapshot(**values: Any) -> Snapshot:
    """The subscription after a change of plan, with other values."""
    body = document("paddle", "subscription.updated--plan")["data"]
    return PROVIDER.snapshot(changed(body, lambda body: body.update(values)))


def item(number: int, amount: str = "100", **values: Any) -> dict[str, Any]:
    price = {"id": f"pri_{number}", "unit_price": {"amount": amount, "currency_code": "EUR"}}
    return {"quantity": 2, "recurring": True, "price": price, **values}


class TestEvents:
    @pytest.mark.parametrize("name", ["payment_failed", "past_due"])
    def test_of_dunning_name_the_subscription_and_the_tenant(self, name: str) -> None:
        body = {"event_type": f"transaction.{name}", "occurred_at": "2026-12-15T08:00:00Z"}
        body["data"] = {"subscription_id": "sub_1", "custom_data": {"tenant_id": "acme"}}

        assert PROVIDER.event(event(body)) == BillingEvent(
            subscription_id="sub_1", tenant="acme", occurred_at=at("2026-12-15T08:00:00Z")
        )

    @pytest.mark.parametrize(
        "body",
        [
            {"event_type": "transaction.past_due", "data": {"subscription_id": None}},
            {"event_type": "transaction.completed", "data": {"subscription_id": "sub_1"}},
            {"event_type": "adjustment.created", "data": {"subscription_id": "sub_1"}},
            {"alert_name": "subscription_created"},
        ],
    )
    def test_of_no_subscription_are_unwanted(self, body: Any) -> None:
        with pytest.raises(Unwanted):
            PROVIDER.event(event({"occurred_at": "2026-12-15T08:00:00Z", **body}))


class TestStatuses:
    def test_paused_has_no_period(self) -> None:
        found = snapshot(status="paused", current_billing_period=None, next_billed_at=None)

        assert found.current_period_end is None
        assert found.items == (TEAM,)
        assert found.auto_renew


class TestItems:
    def test_add_up_amounts_in_text(self) -> None:
        found = snapshot(items=[item(1), item(2, "1900", quantity=3)])

        assert found.items == (Item("pri_1", "pri_1", 2), Item("pri_2", "pri_2", 3))
        assert found.amount == 5900

    def test_that_are_charged_once_are_left_out(self) -> None:
        found = snapshot(items=[item(1, recurring=False), item(2)])

        assert found.items == (Item("pri_2", "pri_2", 2),)
        assert found.amount == 200

    def test_of_a_paused_subscription_are_inactive_and_stay(self) -> None:
        assert snapshot(items=[item(1, status="inactive")]).items == (Item("pri_1", "pri_1", 2),)

    @pytest.mark.parametrize("amount", ["19.00", "", None, "-5", "1e9"])
    def test_that_have_no_whole_amount_leave_the_amount_unknown(self, amount: Any) -> None:
        assert snapshot(items=[item(1), item(2, amount)]).amount is None

    def test_have_the_trials_end(self) -> None:
        trials = [{"ends_at": "2026-11-20T00:00:00Z"}, {"ends_at": "2026-11-15T00:00:00Z"}, None]

        found = snapshot(items=[item(n, trial_dates=trial) for n, trial in enumerate(trials)])

        assert found.trial_end == at("2026-11-15T00:00:00Z")


class TestScheduledChange:
    @pytest.mark.parametrize(
        ("action", "ends"), [("cancel", True), ("pause", False), ("resume", False)]
    )
    def test_ends_it_with_the_period_if_it_is_a_cancellation(self, action: str, ends: bool) -> None:
        change = {"action": action, "effective_at": "2026-12-15T08:00:00Z", "resume_at": None}

        found = snapshot(scheduled_change=change)

        assert found.cancel_at_period_end is ends
        assert found.auto_renew is not ends
        assert found.status_class is StatusClass.LIVE
        assert found.canceled_at is None


class TestMembers:
    def test_that_are_missing_have_a_default(self) -> None:
        body = {"id": "sub_1", "customer_id": "ctm_1", "status": "active"}

        found = PROVIDER.snapshot(event({**body, "created_at": "2026-11-01T08:00:00Z"}))

        assert found == Snapshot(
            subscription_id="sub_1",
            customer_id="ctm_1",
            status="active",
            status_class=StatusClass.LIVE,
            items=(),
            amount=None,
            billing_cycle="",
            start_date=at("2026-11-01T08:00:00Z"),
        )

    def test_of_custom_data_can_be_any_json(self) -> None:
        assert snapshot(custom_data={"tenant_id": 42}).tenant == "42"
        assert snapshot(custom_data=["acme"]).tenant == ""
        assert snapshot(custom_data={"tenant_id": {"id": 1}}).tenant == ""
