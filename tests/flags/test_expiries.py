"""An override ends by itself at its moment; a job announces it, once for each expiry."""

import pytest

from app.audit.models import AuditEvent
from app.core.db import batches
from app.flags import jobs
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_limits,
    create_override,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)

FUTURE = "2999-01-01T00:00:00Z"


@pytest.fixture
def preset(app):
    return create_limits("free", limit_flag("calls", 10), preset_flag("beta", False))


@pytest.fixture
def tenant(preset):
    return create_tenant()


@pytest.fixture
def run_job(app):
    def run():
        with app.app_context():
            jobs.announce_expiries()

    return run


def expire():
    """Let the time of all overrides come; no job has run since."""
    database.execute("UPDATE feature_overrides SET expires_at = now()")


def events():
    return database.rows(AuditEvent, action="override.expired")


class TestMoment:
    def test_counts_everywhere_without_the_job(self, api, tenant, preset):
        create_override(tenant, preset, "calls", 20, expires_at=FUTURE)
        create_override(tenant, preset, "beta", True, expires_at=FUTURE)
        token, named = platform_token(), {"tenant_id": str(tenant.id)}

        def told():
            listed = api.get("/v1/billing/flags", token=token, query_string=named).json["data"]
            context = {"context": named}
            path = "/ofrep/v1/evaluate/flags"
            every = api.post(path, token=token, json=context).json["flags"]
            one = api.post(f"{path}/calls", token=token, json=context).json["value"]
            body = {"feature": "calls", **named}
            checked = api.post("/v1/usage/check", token=token, json=body).json["data"]["limit"]
            counted = api.post("/v1/usage/consume", token=token, json=body).json["data"]["limit"]
            usage = api.get("/v1/usage", token=token, query_string=named).json["data"][0]["limit"]
            limits = database.query(
                "SELECT most FROM tenant_limits(CAST(:id AS uuid), NULL)", id=str(tenant.id)
            )
            return (
                {flag["key"]: flag["value"] for flag in listed},
                {flag["key"]: flag["value"] for flag in every},
                {one, checked, counted, usage, limits[0].most},
            )

        before = told()
        expire()
        after = told()

        assert before == ({"calls": 20, "beta": True}, {"calls": 20, "beta": True}, {20})
        assert after == ({"calls": 10, "beta": False}, {"calls": 10, "beta": False}, {10})


class TestAnnouncement:
    def test_is_made_once(self, tenant, preset, run_job):
        override = create_override(tenant, preset, "calls", 20, expires_at=FUTURE)
        create_override(tenant, preset, "beta", True)
        run_job()
        assert events() == []
        database.execute("UPDATE feature_overrides SET expires_at = now() WHERE flag_key = 'calls'")

        run_job()
        run_job()

        (event,) = events()
        assert (event.actor, event.tenant_id) == ("system:job", tenant.id)
        assert (event.target_type, event.target_id) == ("override", str(override.id))
        assert (event.before["flag_key"], event.before["flag_value"]) == ("calls", 20)
        assert event.before["expires_at"]
        assert event.after == {}

    def test_is_made_again_after_another_expiry(self, api, tenant, preset, run_job):
        override = create_override(tenant, preset, "calls", 20, expires_at=FUTURE)
        expire()
        run_job()

        path = f"/v1/billing/flags/overrides/{override.id}"
        body = {"flag_value": 30, "expires_at": FUTURE}
        assert api.patch(path, token=platform_token(), json=body).status_code == 200
        run_job()
        assert len(events()) == 1
        expire()
        run_job()

        assert [event.before["flag_value"] for event in events()] == [20, 30]

    def test_does_not_change_the_override(self, api, tenant, preset, run_job):
        override = create_override(tenant, preset, "calls", 20, expires_at=FUTURE)
        expire()
        path = f"/v1/billing/flags/overrides/{override.id}"
        before = api.get(path, token=platform_token())

        run_job()

        after = api.get(path, token=platform_token())
        assert (after.data, after.headers["ETag"]) == (before.data, before.headers["ETag"])

    def test_is_in_the_history_and_not_in_the_creation(self, api, tenant, run_job):
        created = api.post(
            "/v1/billing/flags/overrides",
            token=platform_token(),
            query_string={"tenant_id": str(tenant.id)},
            json={"flag_key": "calls", "flag_value": 20, "expires_at": FUTURE},
        ).json["data"]
        expire()
        run_job()

        path = f"/v1/billing/flags/overrides/{created['id']}/history"
        found = api.get(path, token=platform_token()).json["data"]

        assert [event["action"] for event in found] == ["override.expired", "override.created"]
        assert "announced_expiry" not in found[1]["after"]

    def test_by_several_schedulers_is_made_once_each(self, monkeypatch, preset, run_job):
        monkeypatch.setattr(batches, "BATCH", 3)
        for _ in range(20):
            create_override(create_tenant(), preset, "calls", 20, expires_at=FUTURE)
        expire()

        at_once([run_job] * 4)
        run_job()  # the last one may have skipped rows that another one had locked

        assert len({event.target_id for event in events()}) == len(events()) == 20
