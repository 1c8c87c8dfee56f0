"""PUT and DELETE /v1/tenants/{tenant_id}/plan, and what ends an assigned plan."""

from datetime import timedelta

import pytest

from app.core.clock import rfc3339, utcnow
from app.plans import jobs
from app.plans.jobs import follow_plans
from app.plans.models import PlanAssignment
from app.tenants.models import Tenant
from tests import database
from tests.factories import (
    create_limits,
    create_preset,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
)
from tests.subscriptions.support import audit_actions, audit_events, plan_of

ASSIGNED = {"plan_name": "scale", "until": None, "reason": "Pilot"}


def put(api, tenant, token=None, **values):
    token = token or platform_token()
    return api.put(f"/v1/tenants/{tenant.id}/plan", token=token, json={**ASSIGNED, **values})


def in_days(days: float) -> str:
    return rfc3339(utcnow() + timedelta(days=days))


def end_assignment(tenant: Tenant) -> None:
    """Let the end come; no job has run since."""
    database.execute(
        "UPDATE plan_assignments SET until = now() - interval '1 second' WHERE tenant_id = :id",
        id=tenant.id,
    )


def flags_of(api, tenant):
    query = {"tenant_id": str(tenant.id)}
    listed = api.get("/v1/billing/flags", token=platform_token(), query_string=query)
    return {flag["key"]: flag["value"] for flag in listed.get_json()["data"]}


@pytest.fixture
def run_job(app):
    def run() -> None:
        with app.app_context():
            follow_plans()

    return run


@pytest.fixture
def tenant(app):
    create_preset("scale", beta=True)
    create_preset("growth", beta=False)
    return create_tenant()


class TestAssign:
    def test_takes_precedence_over_every_subscription(self, api, tenant):
        create_subscription(tenant, plan_name="growth")

        answer = put(api, tenant, until=in_days(14))

        told = answer.get_json()["data"]
        assert answer.status_code == 200
        assert (told["plan_name"], told["source"]) == ("scale", "assignment")
        assert [(one["source"], one["decides"]) for one in told["candidates"]] == [
            ("assignment", True),
            ("subscription", False),
            ("default", False),
        ]
        assert told["candidates"][0]["reason"] == "Pilot"
        assert told["candidates"][0]["until"] == told["until"]
        assert plan_of(tenant) == "scale"
        assert flags_of(api, tenant) == {"beta": True}
        assert audit_actions(tenant) == ["tenant.plan_assigned", "tenant.plan_changed"]

    def test_a_subscription_that_changes_meanwhile_holds_afterwards(self, api, tenant):
        subscription = create_subscription(tenant, plan_name="free")
        put(api, tenant)

        path = f"/v1/billing/subscriptions/{subscription.id}"
        api.patch(path, token=platform_token(), json={"plan_name": "growth"})

        assert plan_of(tenant) == "scale"
        assert (
            api.delete(f"/v1/tenants/{tenant.id}/plan", token=platform_token()).status_code == 204
        )
        assert plan_of(tenant) == "growth"

    def test_needs_no_reason_and_keeps_the_one_that_is_there(self, api, tenant):
        def send(**values):
            body = {"plan_name": "scale", "until": in_days(1), **values}
            path = f"/v1/tenants/{tenant.id}/plan"
            answer = api.put(path, token=platform_token(), json=body)
            return answer.get_json()["data"]["candidates"][0]["reason"]

        assert [send(), send(reason="Pilot"), send(), send(reason="")] == ["", "Pilot", "Pilot", ""]

    def test_an_extension_is_the_same_request_with_a_later_end(self, api, tenant):
        put(api, tenant, until=in_days(1))
        database.execute("UPDATE plan_assignments SET ending_announced_at = now()")
        later = in_days(30)

        answer = put(api, tenant, until=later)

        assert answer.get_json()["data"]["until"] == later
        assert database.row(PlanAssignment).ending_announced_at is None
        event = audit_events(tenant)[-1]
        assert (event.action, list(event.after)) == ("tenant.plan_assigned", ["until"])

    @pytest.mark.parametrize(
        ("values", "place"),
        [
            ({"plan_name": "unknown"}, "plan_name"),
            ({"plan_name": "free"}, "plan_name"),
            ({"until": "2020-01-01T00:00:00Z"}, "until"),
            ({"until": "2030-01-01T00:00:00"}, "until"),
            ({"reason": None}, "reason"),
        ],
    )
    def test_refuses_bad_values(self, api, tenant, values, place):
        answer = put(api, tenant, **values)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", place]
        assert plan_of(tenant) == "free"

    def test_if_match_names_the_version_of_the_tenant(self, api, tenant):
        path, token = f"/v1/tenants/{tenant.id}", platform_token()
        tag = api.get(path, token=token).headers["ETag"]

        first = api.put(f"{path}/plan", token=token, json=ASSIGNED, headers={"If-Match": tag})
        stale = api.delete(f"{path}/plan", token=token, headers={"If-Match": tag})

        assert (first.status_code, stale.status_code) == (200, 412)


class TestWithdraw:
    def test_returns_to_the_default_plan(self, api, tenant):
        put(api, tenant)

        path = f"/v1/tenants/{tenant.id}/plan"
        answers = [api.delete(path, token=platform_token()) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [204, 404]
        assert plan_of(tenant) == "free"
        assert audit_actions(tenant)[2:] == ["tenant.plan_changed", "tenant.plan_withdrawn"]

    def test_returns_to_the_plan_that_was_kept(self, api, tenant):
        kept = create_tenant(plan_name="growth")
        create_subscription(kept, plan_name="grwoth")
        put(api, kept)

        api.delete(f"/v1/tenants/{kept.id}/plan", token=platform_token())

        assert plan_of(kept) == "growth"


class TestEnd:
    """What is granted changes at the moment; the job brings the stored plan after."""

    def test_evaluation_compares_the_moment(self, api, tenant):
        create_subscription(tenant, plan_name="growth")
        put(api, tenant, until=in_days(1))

        def evaluated():
            context = {"context": {"tenant_id": str(tenant.id)}}
            token = platform_token()
            one = api.post("/ofrep/v1/evaluate/flags/beta", token=token, json=context)
            every = api.post("/ofrep/v1/evaluate/flags", token=token, json=context)
            return one.get_json()["value"], every.headers["ETag"], flags_of(api, tenant)["beta"]

        before = evaluated()
        end_assignment(tenant)
        after = evaluated()

        assert plan_of(tenant) == "scale"
        assert (before[0], before[2], after[0], after[2]) == (True, True, False, False)
        assert before[1] != after[1]

    def test_the_explanation_compares_the_moment(self, api, tenant):
        create_subscription(tenant, plan_name="growth")
        put(api, tenant, until=in_days(1))
        end_assignment(tenant)

        path = f"/v1/tenants/{tenant.id}/plan"
        told = api.get(path, token=platform_token()).get_json()["data"]

        assert (told["plan_name"], told["source"], told["until"]) == (
            "growth",
            "subscription",
            None,
        )
        assert "reconcile" not in told["because"]

    def test_limits_compare_the_moment(self, api, tenant):
        create_limits("big", limit_flag(most=1000))
        create_limits("small", limit_flag(most=10))
        create_subscription(tenant, plan_name="small")
        put(api, tenant, plan_name="big", until=in_days(1))
        body = {"feature": "calls", "amount": 500, "tenant_id": str(tenant.id)}

        before = api.post("/v1/usage/check", token=platform_token(), json=body)
        end_assignment(tenant)
        after = api.post("/v1/usage/consume", token=platform_token(), json=body)

        assert before.get_json()["data"]["limit"] == 1000
        assert (after.status_code, after.get_json()["data"]["limit"]) == (409, 10)

    def test_a_new_override_is_of_the_plan_in_force(self, api, tenant):
        create_subscription(tenant, plan_name="growth")
        put(api, tenant, until=in_days(1))
        end_assignment(tenant)

        api.post(
            "/v1/billing/flags/overrides",
            token=platform_token(),
            query_string={"tenant_id": str(tenant.id)},
            json={"flag_key": "beta", "flag_value": True},
        )

        assert flags_of(api, tenant) == {"beta": True}

    def test_the_job_brings_the_stored_plan_after(self, api, tenant, run_job):
        create_subscription(tenant, plan_name="growth")
        put(api, tenant, until=in_days(1))
        other = create_tenant()
        put(api, other, until=in_days(1))
        end_assignment(tenant)

        run_job()
        run_job()

        assert (plan_of(tenant), plan_of(other)) == ("growth", "scale")
        assert [one.tenant_id for one in database.rows(PlanAssignment)] == [other.id]
        ended = audit_events(tenant)[-1]
        assert audit_actions(tenant)[2:] == ["tenant.plan_changed", "trial.ended"]
        assert (ended.actor, ended.before["plan_name"]) == ("system:job", "scale")
        assert (ended.target_type, ended.target_id) == ("tenant", str(tenant.id))

    def test_one_that_fails_delays_no_other(self, api, tenant, run_job, monkeypatch):
        monkeypatch.setattr(jobs, "BATCH", 1)
        broken, other = tenant, create_tenant()
        for each in (broken, other):
            put(api, each, until=in_days(1))
            end_assignment(each)
        database.execute(
            "UPDATE tenants SET version = 9223372036854775807 WHERE id = :id", id=broken.id
        )

        run_job()

        assert (plan_of(broken), plan_of(other)) == ("scale", "free")

    def test_a_change_of_the_subscription_before_the_job_holds(self, api, tenant, run_job):
        subscription = create_subscription(tenant, plan_name="growth")
        put(api, tenant, until=in_days(1))
        end_assignment(tenant)

        path = f"/v1/billing/subscriptions/{subscription.id}"
        api.patch(path, token=platform_token(), json={"plan_name": "scale"})

        assert flags_of(api, tenant) == {"beta": True}
        run_job()
        assert plan_of(tenant) == "scale"

    def test_the_day_of_creation_counts_for_periods(self, api, tenant):
        create_subscription(tenant, plan_name="growth", billing_cycle="annual")

        def ends():
            sql = "SELECT ends FROM usage_period(:id, 'calls', 'billing_cycle', now())"
            ((found,),) = database.query(sql, id=tenant.id)
            return found

        annual = ends()
        put(api, tenant)

        assert ends() < annual
