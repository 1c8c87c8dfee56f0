"""Overrides with ``carry_over`` carry over to the tenant's next plan."""

import pytest

from app.audit.models import AuditEvent
from app.flags.models import FeatureOverride
from app.plans.jobs import follow_plans
from tests import database
from tests.factories import (
    create_limits,
    create_override,
    create_preset,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
)

OVERRIDES = "/v1/billing/flags/overrides"


@pytest.fixture
def growth(app):
    return create_preset("growth", beta=False, theme="plain", depth=1)


@pytest.fixture
def scale(app):
    return create_preset("scale", beta=False, theme=1)


@pytest.fixture
def tenant(growth, scale):
    return create_tenant(plan_name="growth")


@pytest.fixture
def change_plan(api, tenant):
    """Give the tenant another plan, by its subscription."""
    path = f"/v1/billing/subscriptions/{create_subscription(tenant).id}"

    def change(plan_name: str) -> None:
        answer = api.patch(path, token=platform_token(), json={"plan_name": plan_name})
        assert answer.status_code == 200

    return change


def value(api, tenant, flag_key):
    context = {"context": {"tenant_id": str(tenant.id)}}
    path = f"/ofrep/v1/evaluate/flags/{flag_key}"
    return api.post(path, token=platform_token(), json=context).get_json().get("value")


def assign(api, tenant, plan_name):
    """Assign a plan; the tenant's own plan is that of a subscription."""
    create_subscription(tenant)
    body = {"plan_name": plan_name, "until": "2999-01-01T00:00:00Z", "reason": "Trial"}
    path = f"/v1/tenants/{tenant.id}/plan"
    assert api.put(path, token=platform_token(), json=body).status_code == 200


def end_assignment():
    database.execute("UPDATE plan_assignments SET until = now() - interval '1 second'")


class TestPlanChange:
    def test_moves_it_where_the_flag_has_the_same_type(
        self, api, tenant, growth, scale, change_plan
    ):
        along = create_override(tenant, growth, "beta", True, carry_over=True)
        stays = create_override(tenant, growth, "theme", "dark", carry_over=True)
        lost = create_override(tenant, growth, "depth", 9, carry_over=True)

        change_plan("scale")

        assert value(api, tenant, "beta") is True
        placed = {one.id: one.plan_preset_id for one in database.rows(FeatureOverride)}
        assert placed == {along.id: scale.id, stays.id: growth.id, lost.id: growth.id}
        (event,) = database.rows(AuditEvent, action="override.carried_over")
        assert (event.target_id, event.tenant_id) == (str(along.id), tenant.id)
        assert event.before == {"plan_preset_id": str(growth.id)}
        assert event.after == {"plan_preset_id": str(scale.id)}

    def test_leaves_others_where_they_are(self, api, tenant, growth, change_plan):
        create_override(tenant, growth, "beta", True)
        other = create_tenant(plan_name="growth")
        create_override(other, growth, "beta", True, carry_over=True)

        change_plan("scale")

        assert {one.plan_preset_id for one in database.rows(FeatureOverride)} == {growth.id}
        assert value(api, tenant, "beta") is False

    def test_an_override_of_the_next_plan_takes_precedence(
        self, api, tenant, growth, scale, change_plan
    ):
        create_override(tenant, growth, "beta", True, carry_over=True)
        create_override(tenant, scale, "beta", False)

        change_plan("scale")

        assert value(api, tenant, "beta") is False
        assert {one.plan_preset_id for one in database.rows(FeatureOverride)} == {
            growth.id,
            scale.id,
        }

    def test_goes_along_again_and_back(self, api, tenant, growth, change_plan):
        create_preset("huge", beta=False)
        create_override(tenant, growth, "beta", True, carry_over=True)

        for plan_name in ("scale", "huge", "growth"):
            change_plan(plan_name)
            assert value(api, tenant, "beta") is True


class TestEndOfAnAssignedPlan:
    """Before the job has moved them, evaluation takes them along already."""

    def test_flags_keep_the_value(self, api, app, tenant, growth):
        create_override(tenant, growth, "beta", True, carry_over=True)
        assign(api, tenant, "scale")

        before = value(api, tenant, "beta")
        end_assignment()
        between = value(api, tenant, "beta")
        with app.app_context():
            follow_plans()

        assert (before, between, value(api, tenant, "beta")) == (True, True, True)

    def test_limits_keep_the_value(self, api, app):
        small = create_limits("small", limit_flag(most=10), limit_flag("jobs", most=3))
        big = create_limits("big", limit_flag(most=100), limit_flag("jobs", most=30))
        tenant = create_tenant(plan_name="small")
        assign(api, tenant, "big")
        create_override(tenant, big, "calls", 77, carry_over=True)
        create_override(tenant, big, "jobs", 66, carry_over=True)
        create_override(tenant, small, "jobs", 5)
        end_assignment()

        def limits():
            rows = database.query(
                "SELECT feature, most FROM tenant_limits(:id, NULL)", id=tenant.id
            )
            return dict(tuple(row) for row in rows)

        between = limits()
        seen = {key: value(api, tenant, key) for key in between}
        with app.app_context():
            follow_plans()

        assert between == seen == limits() == {"calls": 77, "jobs": 5}


class TestRequests:
    def test_is_given_at_creation_and_included(self, api, tenant):
        body = {"flag_key": "beta", "flag_value": True, "carry_over": True}
        query = {"tenant_id": str(tenant.id)}

        made = api.post(OVERRIDES, token=platform_token(), json=body, query_string=query)

        path = f"{OVERRIDES}/{made.get_json()['data']['id']}?include=carry_over"
        read = api.get(path, token=platform_token()).get_json()["data"]
        assert "carry_over" not in made.get_json()["data"]
        assert list(read)[-1] == "carry_over"
        assert read["carry_over"] is True


def test_an_expired_override_of_the_plan_replaces_one_that_carries_over(api, app):
    growth, scale = (create_limits(name, limit_flag()) for name in ("growth", "scale"))
    tenant = create_tenant(plan_name="growth")
    create_override(tenant, growth, "calls", 99, carry_over=True)
    create_override(tenant, scale, "calls", 55, expires_at="2020-01-01T00:00:00Z")
    database.execute(
        "INSERT INTO plan_assignments"
        " (tenant_id, plan_name, next_plan_name, until, reason, created_by, created_at)"
        " VALUES (:id, 'growth', 'scale', now() - interval '1 day', '', '', now())",
        id=tenant.id,
    )

    [limit] = database.query("SELECT most FROM tenant_limits(:id, 'calls')", id=tenant.id)

    assert value(api, tenant, "calls") == limit.most == 100
