"""Plans without a preset, and trials that no job has ended, in /metrics and flask doctor."""

import pytest

from app.core.clock import utcnow
from app.plans.models import PlanAssignment
from tests.cli.test_doctor import examine
from tests.factories import create_preset, create_subscription, create_tenant, save
from tests.operations.test_metrics import samples

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


class TestPlansWithoutAPreset:
    def test_count_the_tenants_that_have_them(self, api):
        create_preset("pro")
        create_tenant(plan_name="pro")
        create_tenant(plan_name="free")
        create_tenant(plan_name="gone")
        create_subscription(create_tenant(), plan_name="typo")

        assert samples(api.get("/metrics").text)["tenants_on_unknown_plan",] == 2

    def test_are_listed_by_the_doctor(self, app, environment):
        create_tenant(plan_name="gone")
        create_subscription(create_tenant(), plan_name="gone")
        create_subscription(create_tenant(), plan_name="typo")
        create_subscription(create_tenant(), plan_name="ended", bp_status="canceled")

        found = examine(environment)[0]["plans"]

        assert found["ok"]
        assert found["found"] == "without a preset (tenants): gone (2), typo (1)"

    def test_include_the_default_plan(self, app, environment):
        found = examine(environment)[0]["plans"]

        assert found["ok"]
        assert found["found"] == "no preset is named free (DEFAULT_PLAN)"
        assert "Create the preset" in found["fix"]


class TestTrials:
    @pytest.fixture
    def assign(self, app):
        def store(until):
            values = {"plan_name": "free", "next_plan_name": "free", "reason": "", "created_by": ""}
            save(PlanAssignment, tenant_id=create_tenant().id, until=until, **values)

        return store

    def test_that_no_job_has_ended_are_counted(self, api, environment, assign):
        for until in (None, FUTURE, utcnow(), PAST, PAST):
            assign(until)

        assert samples(api.get("/metrics").text)["trials_overdue",] == 2
        found = examine(environment)[0]["trials"]
        assert (found["ok"], found["found"]) == (False, "2 over, but not ended")
        assert "flask jobs background" in found["fix"]

    def test_that_go_on_are_no_fault(self, environment, assign):
        assign(FUTURE)

        assert examine(environment)[0]["trials"]["ok"]
