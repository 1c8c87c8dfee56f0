"""Requests to delete a tenant, and to restore it."""

import json
from datetime import timedelta

import pytest

from app.audit.models import AuditEvent
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.tenants.models import DeletedOrganization, DeletionStage, Tenant, TenantDeletion
from tests import database
from tests.factories import create_tenant, platform_token, save
from tests.inbox.sending import Sender

GRACE = timedelta(days=30)


@pytest.fixture
def token(app):
    return platform_token()


@pytest.fixture
def tenant(app):
    return create_tenant(slug="acme", is_active=False)


def ask(api, tenant, token, slug="acme", **options):
    return api.delete(f"/v1/tenants/{tenant.id}", token=token, json={"slug": slug}, **options)


def run(app, *words):
    return app.test_cli_runner().invoke(args=["tenants", *words])


class TestRequestDeletion:
    def test_answers_when_the_tenant_will_be_deleted(self, api, token, tenant):
        answer = ask(api, tenant, token)

        data = answer.get_json()["data"]
        deletes_at = database.row(Tenant, id=tenant.id).deletes_at
        assert answer.status_code == 202
        assert list(data) == [
            "tenant_id", "slug", "requested_at", "requested_by", "deletes_at", "stage",
        ]  # fmt: skip
        assert (data["slug"], data["stage"]) == ("acme", "waiting")
        assert data["requested_by"] == "platform:platform-operator"
        assert abs(deletes_at - utcnow() - GRACE) < timedelta(minutes=1)

    def test_a_second_time_answers_the_same_date(self, api, token, tenant):
        first = ask(api, tenant, token)
        second = ask(api, tenant, token)

        requests = database.rows(AuditEvent, action="tenant.deletion_requested")
        assert second.status_code == 202
        assert second.get_json() == first.get_json()
        assert len(requests) == 1

    def test_refuses_another_slug(self, api, token, tenant):
        answer = ask(api, tenant, token, slug="other")

        (fault,) = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert (fault["loc"], fault["input"]) == (["body", "slug"], "other")
        assert database.rows(TenantDeletion) == []

    def test_refuses_an_active_tenant(self, api, token):
        answer = ask(api, create_tenant(slug="acme"), token)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "tenant_active")


class TestWhileADeletionWaits:
    def test_the_tenant_cannot_be_activated(self, api, token, tenant):
        ask(api, tenant, token)

        path = f"/v1/tenants/{tenant.id}/active?is_active="
        activated = api.patch(f"{path}true", token=token)
        suspended = api.patch(f"{path}false", token=token)

        assert (activated.status_code, activated.get_json()["code"]) == (409, "tenant_deleting")
        assert suspended.status_code == 200

    def test_identity_events_change_it_but_do_not_activate_it(
        self, app, api, token, tenant, monkeypatch
    ):
        sender = Sender(app, monkeypatch)
        organization = {"id": tenant.idp_org_id, "name": "First"}
        for minute, change in enumerate(("created", "deleted")):
            at = f"2026-01-05T09:0{minute}:00Z"
            body = {"type": f"organization.{change}", "timestamp": at, "data": organization}
            sender.deliver("standard_webhooks", body, message_id=change)
        ask(api, tenant, token)

        again = {**organization, "name": "Second"}
        body = {"type": "organization.created", "timestamp": "2026-01-05T09:09:00Z", "data": again}
        event = sender.deliver("standard_webhooks", body, message_id="again")

        found = database.row(Tenant, id=tenant.id)
        assert event.status == "succeeded"
        assert (found.name, found.is_active) == ("Second", False)


class TestRestore:
    def test_withdraws_the_request_and_leaves_the_tenant_suspended(self, api, token, tenant):
        ask(api, tenant, token)

        answer = api.post(f"/v1/tenants/{tenant.id}/restore", token=token)

        assert answer.status_code == 200
        assert answer.get_json()["data"]["is_active"] is False
        assert api.get(f"/v1/tenants/{tenant.id}/deletion", token=token).status_code == 404
        activated = api.patch(f"/v1/tenants/{tenant.id}/active?is_active=true", token=token)
        assert activated.status_code == 200
        (event,) = database.rows(AuditEvent, action="tenant.restored")
        assert event.after == {"deletes_at": None}

    def test_of_a_tenant_that_is_not_deleted_changes_nothing(self, api, token, tenant):
        answer = api.post(f"/v1/tenants/{tenant.id}/restore", token=token)

        assert answer.status_code == 200
        assert database.rows(AuditEvent) == []

    def test_is_refused_once_the_deletion_has_started(self, api, token, tenant):
        ask(api, tenant, token)
        database.execute("UPDATE tenant_deletions SET stage = :rows", rows=DeletionStage.ROWS)

        answer = api.post(f"/v1/tenants/{tenant.id}/restore", token=token)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "deletion_started")


class TestIdsOfDeletedTenants:
    def test_are_refused(self, api, token):
        save(DeletedOrganization, idp_org_id="org_gone")
        other = create_tenant()

        created = api.post(
            "/v1/tenants", token=token, json={"idp_org_id": "org_gone", "name": "Acme"}
        )
        changed = api.patch(f"/v1/tenants/{other.id}", token=token, json={"idp_org_id": "org_gone"})

        for answer in (created, changed):
            assert (answer.status_code, answer.get_json()["code"]) == (409, "idp_org_id_deleted")

    def test_are_freed_by_an_operator(self, app, api, token):
        save(DeletedOrganization, idp_org_id="org_gone")

        freed = run(app, "free-idp-org-id", "org_gone")
        again = run(app, "free-idp-org-id", "org_gone")

        body = {"idp_org_id": "org_gone", "name": "Acme"}
        assert (freed.exit_code, again.exit_code) == (0, 1)
        assert api.post("/v1/tenants", token=token, json=body).status_code == 201
        (event,) = database.rows(AuditEvent, action="tenant.idp_org_id_freed")
        assert (event.actor, event.target_id) == (SYSTEM_CLI.id, "org_gone")

    def test_are_not_brought_back_by_late_events(self, app, monkeypatch):
        save(DeletedOrganization, idp_org_id="org_gone")
        sender = Sender(app, monkeypatch)
        pair = {"organization_id": "org_gone", "user_id": "user_1"}

        events = [
            sender.deliver(
                "standard_webhooks",
                {"type": kind, "timestamp": "2026-01-05T09:00:00Z", "data": data},
                message_id=kind,
            )
            for kind, data in (
                ("organization.updated", {"id": "org_gone", "name": "Back"}),
                ("membership.created", {**pair, "role": "member"}),
            )
        ]

        left = database.query("SELECT count(*) AS number FROM identity_objects")
        assert [event.status for event in events] == ["ignored", "ignored"]
        assert "deleted" in events[0].detail
        assert database.rows(Tenant) == []
        assert left[0].number == 0


class TestCommands:
    def test_delete_list_and_restore(self, app, tenant):
        deleted = run(app, "delete", "acme", "--yes", "--json")
        listed = run(app, "deletions", "--json")
        restored = run(app, "restore", "acme", "--json")

        assert deleted.exit_code == listed.exit_code == restored.exit_code == 0
        assert json.loads(listed.stdout) == [json.loads(deleted.stdout)]
        assert json.loads(restored.stdout)["slug"] == "acme"
        assert json.loads(run(app, "deletions", "--json").stdout) == []

    def test_delete_now_ends_the_waiting(self, app, tenant):
        run(app, "delete", "acme", "--yes")

        now = run(app, "delete", "acme", "--now", "--yes")

        assert now.exit_code == 0
        assert database.row(Tenant, id=tenant.id).deletes_at <= utcnow()
