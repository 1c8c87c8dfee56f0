"""NEW_TENANT_PLAN: new tenants start on a trial."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.plans.models import PlanAssignment
from app.tenants.models import Tenant
from tests.database import row, rows
from tests.factories import create_preset, platform_token
from tests.identity_sync.test_sync import generic
from tests.imports.files import bring_in, tenant_line
from tests.operations.test_state import findings

__all__ = ["generic"]


@pytest.fixture
def setting(app, monkeypatch):
    settings = replace(app.extensions["config"], new_tenant_plan=("pro", 14))
    monkeypatch.setitem(app.extensions, "config", settings)


@pytest.fixture
def create(api, setting):
    def send():
        body = {"idp_org_id": "org_new", "name": "New"}
        answer = api.post("/v1/tenants", token=platform_token(), json=body)
        assert answer.status_code == 201, answer.text
        return answer.get_json()["data"]

    return send


class TestStartTrial:
    def test_gives_a_new_tenant_the_plan_for_some_days(self, api, create):
        create_preset("pro", beta=True)

        tenant = create()

        decided = api.get(f"/v1/tenants/{tenant['id']}/plan", token=platform_token())
        (assigned, *_) = decided.get_json()["data"]["candidates"]
        assert tenant["plan_name"] == assigned["plan_name"] == "pro"
        assert (assigned["source"], assigned["reason"]) == ("assignment", "new tenant")
        (stored,) = rows(PlanAssignment)
        assert timedelta(days=13.9) < stored.until - utcnow() <= timedelta(days=14)
        assert (stored.next_plan_name, stored.created_by) == ("free", "system:job")
        (event,) = rows(AuditEvent, action="tenant.plan_assigned")
        assert (event.actor, event.after["plan_name"]) == ("system:job", "pro")

    def test_ends_by_deletion_of_the_assigned_plan(self, api, create):
        create_preset("pro", beta=True)
        tenant = create()

        api.delete(f"/v1/tenants/{tenant['id']}/plan", token=platform_token())

        assert row(Tenant, id=tenant["id"]).plan_name == "free"

    def test_gives_it_to_a_tenant_of_an_identity_event(self, app, setting, generic):
        create_preset("pro", beta=True)

        generic("organization.created", "09:00", id="org_1", name="Acme")

        (tenant,) = rows(Tenant)
        assert tenant.plan_name == "pro"
        assert [one.tenant_id for one in rows(PlanAssignment)] == [tenant.id]

    def test_gives_it_to_no_tenant_of_an_import(self, app, api, setting):
        create_preset("pro", beta=True)

        bring_in(app, api, tenant_line("org_imported"))

        assert row(Tenant, idp_org_id="org_imported").plan_name == "free"
        assert rows(PlanAssignment) == []

    def test_goes_on_without_the_preset_and_says_so(self, app, create, caplog):
        tenant = create()

        assert tenant["plan_name"] == "free"
        assert [one.getMessage() for one in caplog.records] == ["new_tenant_plan_unknown"]
        found = findings(app.test_client(), platform_token())["plans"]
        assert not found["ok"]
        assert found["found"] == "no preset is named pro (NEW_TENANT_PLAN)"
