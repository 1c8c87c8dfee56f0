"""The events of limits, temporary grants and trials, as the tenant reads them."""

from datetime import timedelta

import pytest

from app.core.clock import rfc3339, utcnow
from app.flags.jobs import announce_expiries
from app.plans.jobs import follow_plans
from tests import database
from tests.events.support import read
from tests.events.test_every_change import faults
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_tenant,
    create_user,
    limit_flag,
    platform_token,
)


@pytest.fixture
def preset(app):
    return create_limits("free", limit_flag("calls", 10, period="day"), limit_flag("seats", 2))


@pytest.fixture
def tenant(preset):
    return create_tenant()


@pytest.fixture
def events(app, api, tenant):
    """Reads the tenant's events of these types with a key of the tenant, and checks their form."""
    key = create_api_key(tenant, ["events:read", "usage:write"])
    document = app.test_client().get("/openapi.json").get_json()

    def found(types):
        page = read(api, key, types=types)["data"]
        assert [fault for event in page for fault in faults(document, event)] == []
        return [(event["type"], event["actor"], event["data"]) for event in page]

    return found


def run(app, job):
    with app.app_context():
        job()


class TestLimits:
    def test_have_the_state_of_the_limit(self, api, tenant, events):
        body = {"feature": "calls", "amount": 10, "tenant_id": str(tenant.id)}
        token = platform_token()
        ends = api.post("/v1/usage/consume", token=token, json=body).json["data"]["resets_at"]

        state = {"feature": "calls", "used": 10, "limit": 10, "policy": "hard", "resets_at": ends}
        assert events("limit.*") == [
            ("limit.warning", "platform", {**state, "percent": 80}),
            ("limit.reached", "platform", {**state, "percent": 100}),
        ]

    def test_of_seats_are_alike(self, api, tenant, events):
        create_member(tenant)
        body = {"user_id": str(create_user(tenant).id), "role": "member"}
        api.post("/v1/memberships/tenant", token=platform_token(tenant=tenant), json=body)

        state = {"feature": "seats", "used": 2, "limit": 2, "policy": "hard", "resets_at": None}
        assert [(type_, data) for type_, _, data in events("limit.*")] == [
            ("limit.warning", {**state, "percent": 80}),
            ("limit.reached", {**state, "percent": 100}),
        ]


class TestOverrideExpired:
    def test_has_the_override(self, app, api, tenant, preset, events):
        override = create_override(tenant, preset, "calls", 20, expires_at=utcnow())
        run(app, announce_expiries)

        shown = api.get(f"/v1/billing/flags/overrides/{override.id}", token=platform_token())

        assert events("override.*") == [("override.expired", "system:job", shown.json["data"])]


class TestTrials:
    def test_have_the_assigned_plan_and_the_next_one(self, app, api, tenant, events):
        create_limits("scale", limit_flag("calls", 1000))
        until = rfc3339((utcnow() + timedelta(days=365)).replace(microsecond=0))
        assigned = {"plan_name": "scale", "until": until, "reason": "Trial"}
        path = f"/v1/tenants/{tenant.id}/plan"
        assert api.put(path, token=platform_token(), json=assigned).status_code == 200

        for until in ("now() + interval '1 day'", "now()"):
            database.execute(f"UPDATE plan_assignments SET until = {until}")
            run(app, follow_plans)

        found = events("trial.*,tenant.plan_changed")
        assert [type_ for type_, _, _ in found] == [
            "tenant.plan_changed",
            "trial.ending",
            "tenant.plan_changed",
            "trial.ended",
        ]
        for _, actor, data in (found[1], found[3]):
            assert actor == "system:job"
            assert list(data) == ["plan_name", "until", "reason", "next_plan_name"]
            assert data | {"until": None} == {**assigned, "until": None, "next_plan_name": "free"}
