"""A plan is renamed, a plan's name is misspelt, and a customer goes from a trial to a plan."""

import pytest

from app.plans.jobs import follow_plans
from tests import database
from tests.factories import create_tenant, limit_flag, platform_token, preset_flag

PLANS = "/v1/billing/plans"
SUBSCRIPTIONS = "/v1/billing/subscriptions"
SUBSCRIPTION = {
    "bp_subscription_id": "sub_1",
    "bp_customer_id": "cus_1",
    "bp_plan_id": "price_1",
    "bp_status": "active",
    "plan_name": "growth",
    "start_date": "2026-01-15T00:00:00Z",
    "billing_cycle": "monthly",
    "per_cycle_billing_amount": 4900,
}


@pytest.fixture
def run_job(app):
    def run() -> None:
        with app.app_context():
            follow_plans()

    return run


@pytest.fixture
def send(api):
    """Send a request of the platform; its answer must have the ``expected`` status."""

    def request(method, path, body=None, *, expected=200, **query):
        answer = api.request(method, path, token=platform_token(), json=body, query_string=query)
        assert answer.status_code == expected, answer.text
        return answer

    return request


def plan_of(send, tenant):
    return send("GET", f"/v1/tenants/{tenant.id}").get_json()["data"]["plan_name"]


def flags_of(send, tenant):
    listed = send("GET", "/v1/billing/flags", tenant_id=str(tenant.id)).get_json()["data"]
    return {flag["key"]: flag["value"] for flag in listed}


class TestRenaming:
    def test_a_plan_in_use_gets_another_display_name_or_a_successor(self, send, run_job):
        tenant = create_tenant()
        beta = preset_flag("beta", True)
        old = send("POST", PLANS, {"name": "growth", "flags": [beta]}, expected=201)
        path = f"{PLANS}/{old.get_json()['data']['id']}"
        made = send("POST", SUBSCRIPTIONS, SUBSCRIPTION, expected=201, tenant_id=str(tenant.id))
        subscription = f"{SUBSCRIPTIONS}/{made.get_json()['data']['id']}"

        refused = send("PATCH", path, {"name": "business"}, expected=409).get_json()
        assert refused["code"] == "plan_in_use"
        assert "tenants: 1, subscriptions that have not ended: 1" in refused["detail"]
        send("PATCH", path, {"display_name": "Business"})
        assert flags_of(send, tenant) == {"beta": True}

        # The successor has another name. When the last customer has moved, the old plan is free.
        send("POST", PLANS, {"name": "business", "flags": [beta]}, expected=201)
        send("PATCH", subscription, {"plan_name": "business"})
        send("PATCH", path, {"name": "growth-2025"})
        assert (plan_of(send, tenant), flags_of(send, tenant)) == ("business", {"beta": True})


class TestTypingError:
    def test_takes_nothing_from_the_customer(self, send, run_job):
        tenant = create_tenant()
        flags = [preset_flag("beta", True)]
        send("POST", PLANS, {"name": "growth", "flags": flags}, expected=201)
        made = send("POST", SUBSCRIPTIONS, SUBSCRIPTION, expected=201, tenant_id=str(tenant.id))
        subscription = f"{SUBSCRIPTIONS}/{made.get_json()['data']['id']}"

        mirrored = send("PATCH", subscription, {"plan_name": "sclae"})
        assert mirrored.headers["X-Plan-Unknown"] == "sclae"
        assert (plan_of(send, tenant), flags_of(send, tenant)) == ("growth", {"beta": True})
        told = send("GET", f"/v1/tenants/{tenant.id}/plan").get_json()["data"]
        assert (told["source"], told["candidates"][0]["plan_name"]) == ("kept", "sclae")
        events = send("GET", "/v1/audit-events", action="subscription.plan_unknown").get_json()
        assert len(events["data"]) == 1

        # Corrected at the provider before its preset exists: it holds when that is created.
        send("PATCH", subscription, {"plan_name": "scale"})
        assert plan_of(send, tenant) == "growth"
        scale = [preset_flag("beta", True), preset_flag("audit", True)]
        send("POST", PLANS, {"name": "scale", "flags": scale}, expected=201)
        run_job()
        assert (plan_of(send, tenant), flags_of(send, tenant)) == (
            "scale",
            {"beta": True, "audit": True},
        )


class TestPlanChange:
    def test_from_a_trial_to_a_plan_keeps_what_was_agreed(self, send, run_job):
        tenant = create_tenant()
        of_tenant = {"tenant_id": str(tenant.id)}
        for name, most in (("growth", 10), ("scale", 100)):
            flags = [limit_flag("jobs", most), preset_flag("beta", False)]
            send("POST", PLANS, {"name": name, "flags": flags}, expected=201)

        # A trial of the larger plan, with a flag that was promised for good.
        trial = {"plan_name": "scale", "until": "2999-01-01T00:00:00Z", "reason": "Trial"}
        assert plan_of(send, tenant) == "free"
        send("PUT", f"/v1/tenants/{tenant.id}/plan", trial)
        promised = {"flag_key": "beta", "flag_value": True, "carry_over": True}
        send("POST", "/v1/billing/flags/overrides", promised, expected=201, **of_tenant)
        jobs = {"feature": "jobs", "amount": 40, **of_tenant}
        send("POST", "/v1/usage/consume", jobs)

        # They subscribe to the smaller plan while the trial goes on.
        send("POST", SUBSCRIPTIONS, SUBSCRIPTION, expected=201, **of_tenant)
        assert flags_of(send, tenant) == {"jobs": 100, "beta": True}

        # The trial ends by itself: at once for flags and limits, then in the stored plan.
        database.execute("UPDATE plan_assignments SET until = now()")
        assert flags_of(send, tenant) == {"jobs": 10, "beta": True}
        refused = send("POST", "/v1/usage/consume", {**jobs, "amount": 1}, expected=409)
        assert refused.get_json()["data"]["over_by"] == 30
        assert plan_of(send, tenant) == "scale"
        run_job()
        assert (plan_of(send, tenant), flags_of(send, tenant)) == (
            "growth",
            {"jobs": 10, "beta": True},
        )
