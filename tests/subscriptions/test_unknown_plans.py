"""A subscription's plan without a preset is mirrored, but has no effect until the preset exists."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.actors import SYSTEM_CLI
from app.plans import jobs, presets
from app.plans.jobs import follow_plans
from app.plans.models import PlanAssignment
from app.tenants.models import Tenant
from tests.database import execute, platform_transaction, row, wait_for_lock
from tests.factories import create_preset, create_subscription, create_tenant, platform_token
from tests.imports.files import as_file, finish, subscription_line, tenant_line
from tests.imports.files import post as post_file
from tests.subscriptions.support import audit_actions, audit_events, plan_of, stored
from tests.subscriptions.test_endpoints import NEW

URL = "/v1/billing/subscriptions"


def post(api, tenant, **values):
    query = {"tenant_id": str(tenant.id)}
    return api.post(URL, token=platform_token(), query_string=query, json={**NEW, **values})


def patch(api, subscription, **values):
    return api.patch(f"{URL}/{subscription.id}", token=platform_token(), json=values)


@pytest.fixture
def tenant(app):
    create_preset("growth")
    return create_tenant(plan_name="growth")


class TestUnknownPlan:
    def test_is_mirrored_and_told_but_has_no_effect(self, api, tenant):
        subscription = create_subscription(tenant)

        answer = patch(api, subscription, plan_name="grwoth")

        assert answer.status_code == 200
        assert answer.headers["X-Plan-Unknown"] == "grwoth"
        assert answer.json["data"]["plan_name"] == stored(subscription).plan_name == "grwoth"
        assert plan_of(tenant) == "growth"
        assert audit_actions(tenant) == ["subscription.updated", "subscription.plan_unknown"]
        assert audit_events(tenant)[-1].after == {"plan_name": "grwoth"}

    def test_of_a_new_subscription_too(self, api, tenant):
        answer = post(api, tenant, plan_name="typo")

        assert (answer.status_code, answer.headers["X-Plan-Unknown"]) == (201, "typo")
        assert plan_of(tenant) == "growth"
        assert "subscription.plan_unknown" in audit_actions(tenant)

    def test_of_one_that_begins_again_too(self, api, tenant):
        subscription = create_subscription(tenant, plan_name="typo", bp_status="canceled")

        answer = patch(api, subscription, bp_status="active")

        assert answer.headers["X-Plan-Unknown"] == "typo"
        assert "subscription.plan_unknown" in audit_actions(tenant)

    def test_of_an_imported_subscription_too(self, app, api):
        lines = as_file(tenant_line("org"), subscription_line(plan_name="typo"))

        finish(app, post_file(api, lines).get_json()["data"]["id"])

        imported = row(Tenant, idp_org_id="org")
        assert imported.plan_name == "free"
        assert "subscription.plan_unknown" in audit_actions(imported)

    def test_is_told_again_but_recorded_once(self, api, tenant):
        subscription = create_subscription(tenant)
        patch(api, subscription, plan_name="grwoth")

        same = patch(api, subscription, plan_name="grwoth")
        other = patch(api, subscription, bp_status="past_due", billing_city="Bern")

        assert [answer.headers["X-Plan-Unknown"] for answer in (same, other)] == ["grwoth"] * 2
        assert audit_actions(tenant).count("subscription.plan_unknown") == 1

    @pytest.mark.parametrize(
        ("name", "told"),
        [("Größe", "Gr%C3%B6%C3%9Fe"), ("a\r\nb: c", "a%0D%0Ab: c"), ("5%", "5%25")],
    )
    def test_a_header_can_hold_every_name(self, api, tenant, name, told):
        answer = patch(api, create_subscription(tenant), plan_name=name)

        assert answer.headers["X-Plan-Unknown"] == told

    def test_of_an_ended_subscription_is_not_told(self, api, tenant):
        answer = patch(api, create_subscription(tenant), plan_name="typo", bp_status="canceled")

        assert "X-Plan-Unknown" not in answer.headers
        assert plan_of(tenant) == "free"

    def test_the_explanation_says_that_the_plan_is_kept(self, api, tenant):
        patch(api, create_subscription(tenant), plan_name="grwoth")

        path = f"/v1/tenants/{tenant.id}/plan"
        told = api.get(path, token=platform_token()).get_json()["data"]

        assert (told["plan_name"], told["source"]) == ("growth", "kept")
        assert [(one["source"], one["plan_name"]) for one in told["candidates"]] == [
            ("subscription", "grwoth"),
            ("kept", "growth"),
            ("default", "free"),
        ]


class TestItsPreset:
    def test_makes_it_hold_when_it_is_created(self, app, api, tenant):
        patch(api, create_subscription(tenant), plan_name="scale")
        other = create_tenant()
        create_subscription(other, plan_name="scale", bp_status="canceled")

        api.post("/v1/billing/plans", token=platform_token(), json={"name": "scale"})
        with app.app_context():
            follow_plans()

        assert (plan_of(tenant), plan_of(other)) == ("scale", "free")
        assert audit_events(tenant)[-1].actor == "system:job"

    def test_makes_it_hold_when_another_gets_its_name(self, app, api, tenant):
        patch(api, create_subscription(tenant), plan_name="scale")
        preset = create_preset("unused")

        path = f"/v1/billing/plans/{preset.id}"
        api.patch(path, token=platform_token(), json={"name": "scale"})
        with app.app_context():
            follow_plans()

        assert plan_of(tenant) == "scale"

    def test_makes_it_hold_for_others_where_one_fails(self, app, api, tenant, monkeypatch):
        monkeypatch.setattr(jobs, "BATCH", 1)
        tenants = [tenant, create_tenant(), create_tenant()]
        for each, plan in zip(tenants, ("scale", "scale", "team"), strict=True):
            patch(api, create_subscription(each), plan_name=plan)
        execute("UPDATE tenants SET version = 9223372036854775807 WHERE id = :id", id=tenant.id)
        for plan in ("scale", "team"):
            api.post("/v1/billing/plans", token=platform_token(), json={"name": plan})

        with app.app_context():
            follow_plans()

        assert [plan_of(each) for each in tenants] == ["growth", "scale", "team"]

    def test_makes_it_hold_after_an_assigned_plan(self, app, api, tenant):
        patch(api, create_subscription(tenant), plan_name="scale")
        body = {"plan_name": "growth", "until": "2999-01-01T00:00:00Z", "reason": "Trial"}
        api.put(f"/v1/tenants/{tenant.id}/plan", token=platform_token(), json=body)

        api.post("/v1/billing/plans", token=platform_token(), json={"name": "scale"})
        with app.app_context():
            follow_plans()

        assert plan_of(tenant) == "growth"
        assert row(PlanAssignment).next_plan_name == "scale"

    def test_waits_for_a_subscription_that_has_not_found_it(self, app, api, tenant):
        """Neither commits without seeing the other."""
        subscription = create_subscription(tenant)

        with ThreadPoolExecutor() as threads:
            with platform_transaction():
                presets.create_preset("scale", [], actor=SYSTEM_CLI)
                waiting = threads.submit(patch, api, subscription, plan_name="scale")
                wait_for_lock(waiting)
            answer = waiting.result()

        assert "X-Plan-Unknown" not in answer.headers
        assert plan_of(tenant) == "scale"
