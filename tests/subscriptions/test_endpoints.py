"""Subscriptions over HTTP."""

import pytest

from app.auth.permissions import Permission, Role
from tests.factories import (
    create_api_key,
    create_member,
    create_subscription,
    create_tenant,
    platform_token,
)
from tests.subscriptions.support import audit_actions, plan_of

pytestmark = pytest.mark.usefixtures("presets")

URL = "/v1/billing/subscriptions"
NEW = {
    "bp_subscription_id": "sub_new",
    "bp_customer_id": "cus_1",
    "bp_plan_id": "price_1",
    "bp_status": "active",
    "plan_name": "growth",
    "start_date": "2026-02-01T00:00:00Z",
    "billing_cycle": "monthly",
    "per_cycle_billing_amount": 9900,
}
BILLING_WRITE = [Permission.BILLING_READ, Permission.BILLING_WRITE]


def create(api, tenant, token=None, **values):
    return api.post(
        URL,
        token=token or platform_token(),
        query_string={"tenant_id": str(tenant.id)},
        json=NEW | values,
    )


class TestCreateSubscription:
    def test_fills_in_what_is_left_out(self, api):
        data = create(api, create_tenant()).json["data"]

        assert data["is_free_trial"] is False
        assert data["auto_renew"] is True
        assert data["billing_email"] == ""
        assert data["send_invoice_days_before_due"] == 0

    def test_gives_the_tenant_its_plan(self, api, tenant):
        create(api, tenant)

        assert plan_of(tenant) == "growth"
        assert audit_actions(tenant) == ["subscription.created", "tenant.plan_changed"]

    def test_refuses_the_same_provider_id_twice(self, api, tenant):
        create(api, tenant)

        answer = create(api, tenant)

        assert (answer.status_code, answer.json["code"]) == (409, "bp_subscription_id_taken")

    @pytest.mark.parametrize("body", [NEW, {}])
    def test_refuses_a_tenants_owner_before_it_looks_at_the_body(self, api, body):
        _, _, token = create_member(create_tenant(), Role.OWNER)

        answer = api.post(URL, token=token, json=body)

        assert (answer.status_code, answer.json["code"]) == (403, "provider_field")


class TestListSubscriptions:
    def list(self, api, token, **query):
        answer = api.get(URL, token=token, query_string=query)
        assert answer.status_code == 200, answer.json
        return [row["id"] for row in answer.json["data"]]

    def test_narrows_by_every_filter(self, api, tenant):
        wanted = create_subscription(
            tenant, bp_customer_id="c" * 5000, bp_status="past_due", bp_subscription_id="sub_x"
        )
        create_subscription(tenant)
        create_subscription(create_tenant())
        token = platform_token()

        for query in (
            {"tenant_id": str(tenant.id), "bp_status": "past_due"},
            {"bp_customer_id": "c" * 5000},
            {"bp_status": "past_due"},
            {"bp_subscription_id": "sub_x"},
            {"status_class": "past_due"},
        ):
            assert self.list(api, token, **query) == [str(wanted.id)], query
        assert len(self.list(api, token)) == 3
        assert self.list(api, token, bp_status="past_due", status_class="live") == []


class TestSuspendedTenant:
    def test_is_refused_while_the_provider_goes_on(self, api):
        tenant = create_tenant(is_active=False)
        row = create_subscription(tenant)
        _, _, token = create_member(tenant, Role.OWNER)

        own = api.get(f"{URL}/{row.id}", token=token)
        sync = api.patch(
            f"{URL}/{row.id}",
            token=create_api_key(permissions=BILLING_WRITE),
            json={"plan_name": "scale"},
        )

        assert (own.status_code, own.json["code"]) == (403, "tenant_suspended")
        assert sync.status_code == 200
        assert plan_of(tenant) == "scale"
