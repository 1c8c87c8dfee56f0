"""Recording cancellations."""

from datetime import UTC, datetime

import pytest

from tests.factories import create_subscription, create_tenant, platform_token
from tests.subscriptions.support import audit_actions, plan_of, stored

pytestmark = pytest.mark.usefixtures("presets")


def cancel(api, row, body=None, token=None, **headers):
    return api.post(
        f"/v1/billing/subscriptions/{row.id}/cancel",
        token=token or platform_token(),
        json=body or {},
        headers=headers,
    )


def update(api, row, body):
    path = f"/v1/billing/subscriptions/{row.id}"
    return api.patch(path, token=platform_token(), json=body)


class TestCancelSubscription:
    def test_ends_it_now_and_gives_the_tenant_the_default_plan(self, api):
        tenant = create_tenant(plan_name="growth")
        row = create_subscription(tenant)
        body = {"reason": "too dear", "canceled_at": "2026-05-01T02:00:00+02:00"}

        data = cancel(api, row, body).json["data"]

        assert (data["bp_status"], data["auto_renew"]) == ("canceled", False)
        assert plan_of(tenant) == "free"
        assert audit_actions(tenant) == ["subscription.canceled", "tenant.plan_changed"]
        now = stored(row)
        assert (now.cancel_reason, now.cancel_at_period_end) == ("too dear", False)
        assert now.canceled_at == datetime(2026, 5, 1, tzinfo=UTC)

    def test_leaves_the_status_until_the_periods_end(self, api):
        tenant = create_tenant(plan_name="growth")
        row = create_subscription(tenant)

        data = cancel(api, row, {"at_period_end": True}).json["data"]

        assert (data["bp_status"], data["auto_renew"]) == ("active", False)
        assert plan_of(tenant) == "growth"
        assert stored(row).cancel_at_period_end is True

    @pytest.mark.parametrize("at_period_end", [True, False])
    def test_a_second_time_changes_nothing(self, api, at_period_end, tenant, row):
        first = cancel(api, row, {"at_period_end": at_period_end, "reason": "a"})

        again = cancel(api, row, {"at_period_end": at_period_end, "reason": "b"})

        assert again.status_code == 200
        assert (again.json, again.headers["ETag"]) == (first.json, first.headers["ETag"])
        assert audit_actions(tenant) == ["subscription.canceled"]
        assert stored(row).cancel_reason == "a"

    def test_now_after_one_at_the_periods_end_is_a_new_cancellation(self, api, tenant, row):
        cancel(api, row, {"at_period_end": True})

        data = cancel(api, row).json["data"]

        assert data["bp_status"] == "canceled"
        assert audit_actions(tenant) == ["subscription.canceled"] * 2

    @pytest.mark.parametrize("at_period_end", [True, False])
    @pytest.mark.parametrize("status", ["canceled", "cancelled", "terminated"])
    def test_after_the_end_changes_nothing(self, api, status, at_period_end, tenant):
        row = create_subscription(tenant, bp_status=status)

        answer = cancel(api, row, {"at_period_end": at_period_end})

        assert (answer.status_code, answer.json["data"]["bp_status"]) == (200, status)
        assert audit_actions(tenant) == []

    def test_is_withdrawn_when_it_renews_again(self, api, tenant, row):
        cancel(api, row, {"at_period_end": True})

        update(api, row, {"auto_renew": True})
        withdrawn = stored(row).canceled_at
        cancel(api, row, {"at_period_end": True})

        assert withdrawn is None
        assert audit_actions(tenant) == [
            "subscription.canceled",
            "subscription.updated",
            "subscription.canceled",
        ]

    def test_is_withdrawn_when_the_provider_brings_it_back(self, api):
        tenant = create_tenant(plan_name="growth")
        row = create_subscription(tenant)
        cancel(api, row)

        update(api, row, {"bp_status": "active"})

        assert stored(row).canceled_at is None
        assert plan_of(tenant) == "growth"

    def test_stays_when_the_provider_ends_it(self, api, row):
        cancel(api, row, {"at_period_end": True, "reason": "too dear"})

        update(api, row, {"bp_status": "canceled", "auto_renew": True})

        assert stored(row).cancel_reason == "too dear"
