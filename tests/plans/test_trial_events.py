"""trial.ending and trial.ended: once for each end, whatever runs at the same time."""

from datetime import timedelta

import pytest

from app.core.clock import rfc3339, utcnow
from app.core.db import batches
from app.plans import jobs
from app.plans.models import PlanAssignment
from tests import database
from tests.concurrency import at_once
from tests.factories import create_preset, create_tenant, platform_token
from tests.subscriptions.support import audit_actions, audit_events, plan_of

TRIAL = {"trial.ending", "trial.ended"}


@pytest.fixture
def tenant(app):
    create_preset("scale", beta=True)
    return create_tenant()


@pytest.fixture
def assign(api, tenant):
    """Give the tenant a trial of some days; None: without an end."""

    def put(days, chosen=None):
        until = None if days is None else rfc3339(utcnow() + timedelta(days=days))
        answer = api.put(
            f"/v1/tenants/{(chosen or tenant).id}/plan",
            token=platform_token(),
            json={"plan_name": "scale", "until": until, "reason": "Trial"},
        )
        assert answer.status_code == 200
        return until

    return put


@pytest.fixture
def run_job(app):
    def run():
        with app.app_context():
            jobs.follow_plans()

    return run


def pass_days(days):
    database.execute(
        "UPDATE plan_assignments SET until = until - :days * interval '1 day'", days=days
    )


def announced(tenant):
    return [action for action in audit_actions(tenant) if action in TRIAL]


class TestEnding:
    def test_is_announced_three_days_before(self, tenant, assign, run_job):
        assign(14)

        for days in (0, 10.9, 0.2, 1):
            pass_days(days)
            run_job()
            expected = [] if days in (0, 10.9) else ["trial.ending"]
            assert announced(tenant) == expected

        event = audit_events(tenant)[-1]
        assert (event.actor, event.target_type, event.target_id) == (
            "system:job",
            "tenant",
            str(tenant.id),
        )
        assert event.before == {}
        assert event.after | {"until": None} == {
            "plan_name": "scale",
            "until": None,
            "reason": "Trial",
            "next_plan_name": "free",
        }

    def test_is_announced_again_after_an_extension(self, tenant, assign, run_job):
        assign(2)
        run_job()
        assign(9)
        run_job()
        assert announced(tenant) == ["trial.ending"]

        pass_days(7)
        run_job()
        run_job()

        assert announced(tenant) == ["trial.ending"] * 2

    def test_is_not_announced_again_after_another_change(self, api, tenant, assign, run_job):
        until = assign(2)
        run_job()

        body = {"plan_name": "scale", "until": until, "reason": "Pilot"}
        api.put(f"/v1/tenants/{tenant.id}/plan", token=platform_token(), json=body)
        run_job()

        assert announced(tenant) == ["trial.ending"]

    def test_is_not_announced_without_an_end(self, tenant, assign, run_job):
        assign(None)

        run_job()

        assert announced(tenant) == []


class TestEnded:
    def test_is_announced_once_and_the_plan_follows(self, tenant, assign, run_job):
        assign(2)
        run_job()
        pass_days(2)

        run_job()
        run_job()

        assert announced(tenant) == ["trial.ending", "trial.ended"]
        assert plan_of(tenant) == "free"
        assert database.rows(PlanAssignment) == []

    def test_is_not_announced_of_a_plan_that_is_withdrawn(self, api, tenant, assign, run_job):
        assign(2)
        api.delete(f"/v1/tenants/{tenant.id}/plan", token=platform_token())

        run_job()

        assert announced(tenant) == []


class TestSeveralSchedulers:
    def test_announce_each_event_once(self, monkeypatch, tenant, assign, run_job):
        for module in (batches, jobs):
            monkeypatch.setattr(module, "BATCH", 3)
        ending, ended = ([create_tenant() for _ in range(10)] for _ in range(2))
        for one in (*ending, *ended):
            assign(5, one)
        pass_days(3)
        for one in ended:
            database.execute(
                "UPDATE plan_assignments SET until = now(), ending_announced_at = now()"
                " WHERE tenant_id = CAST(:id AS uuid)",
                id=str(one.id),
            )

        at_once([run_job] * 4)

        assert {tuple(announced(one)) for one in ending} == {("trial.ending",)}
        assert {tuple(announced(one)) for one in ended} == {("trial.ended",)}
