"""/v1/sso-connections, and the webhooks that they follow."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.identity_sync.models import IdentityObject
from app.inbox import jobs as inbox
from app.sso_connections import jobs
from app.sso_connections.models import SsoConnection
from tests import database
from tests.factories import (
    create_member,
    create_sso_connection,
    create_tenant,
    platform_token,
    user_token,
)
from tests.inbox.sending import Sender, all_rows

PATH = "/v1/sso-connections"


def workos(event: str, minute: int, *, updated: int | None = None, **data: Any) -> dict[str, Any]:
    """An event as WorkOS documents it, at this minute after nine."""
    connection = {
        "object": "connection",
        "id": "conn_1",
        "organization_id": "org_1",
        "state": "active",
        "connection_type": "OktaSAML",
        "name": "Acme's Okta",
        "created_at": "2026-01-05T08:00:00.000Z",
        "updated_at": f"2026-01-05T09:{minute if updated is None else updated:02}:00.000Z",
        "domains": [{"id": "d1", "object": "connection_domain", "domain": "acme.example"}],
    }
    return {
        "event": f"connection.{event}",
        "id": f"event_{event}_{minute}",
        "data": {**connection, **data},
        "created_at": f"2026-01-05T09:{minute:02}:00.000Z",
        "context": {},
    }


def certificate(event: str, minute: int, end: str, use: str = "ResponseSigning") -> dict[str, Any]:
    body = workos(f"saml_certificate_{event}", minute)
    body["data"] = {
        "connection": {"id": "conn_1", "organization_id": "org_1"},
        "certificate": {"certificate_type": use, "expiry_date": end},
    }
    return body


ACTIVATED = workos("activated", 1)
DEACTIVATED = workos("deactivated", 3, updated=1, state="inactive")
DELETED = workos("deleted", 5, updated=1, state="inactive")
RENEWED = certificate("renewed", 2, "2027-06-28T19:07:33.155Z")


@pytest.fixture
def tell(sender: Sender):
    return lambda *events: [sender.deliver("workos", event) for event in events]


@pytest.fixture
def tenant(app):
    return create_tenant(idp_org_id="org_1")


def actions() -> list[str]:
    return [row.action for row in all_rows(AuditEvent) if row.target_type == "sso_connection"]


class TestWebhooks:
    def test_make_a_connection(self, api, tell, tenant):
        (event,) = tell(ACTIVATED)

        (row,) = api.get(PATH, token=platform_token()).get_json()["data"]
        assert event.status == "succeeded"
        assert {row.pop(name)[:4] for name in ("created_at", "updated_at")}
        assert row == {
            "id": row["id"],
            "tenant_id": str(tenant.id),
            "source": "workos",
            "idp_connection_id": "conn_1",
            "name": "Acme's Okta",
            "provider": "Okta",
            "type": "saml",
            "state": "active",
            "domains": ["acme.example"],
            "certificate_ends_at": None,
        }

    @pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
    def test_lead_to_the_same_in_any_order_and_twice(self, tell, tenant, order):
        events = [ACTIVATED, RENEWED, DEACTIVATED, workos("activated", 4, name="Renamed")]

        for number in (*order, *order):
            event = {**events[number], "id": f"event_{number}"}
            tell(event)

        (row,) = database.rows(SsoConnection)
        assert (row.state, row.name) == ("active", "Renamed")
        assert row.certificate_ends_at == datetime(2027, 6, 28, 19, 7, 33, 155_000, UTC)

    def test_record_what_has_happened(self, tell, tenant):
        tell(ACTIVATED, RENEWED, DEACTIVATED, DELETED)

        assert actions() == [
            f"sso_connection.{done}" for done in ("activated", "updated", "deactivated", "deleted")
        ]
        assert database.rows(SsoConnection) == []

    def test_do_not_bring_a_deleted_connection_back(self, tell, tenant):
        statuses = [row.status for row in tell(DELETED, ACTIVATED, RENEWED)]

        assert statuses == ["succeeded", "succeeded", "succeeded"]
        assert database.rows(SsoConnection) == []

    @pytest.mark.parametrize(
        ("named", "shown"),
        [
            ("OktaSAML", ("Okta", "saml")),
            ("EntraIdOIDC", ("EntraId", "oidc")),
            ("GoogleOAuth", ("Google", "oauth")),
            ("LoginGovOidc", ("LoginGov", "oidc")),
            ("MagicLink", ("MagicLink", "")),
            (None, ("", "")),
        ],
    )
    def test_name_the_provider_and_the_protocol(self, tell, tenant, named, shown):
        tell(workos("activated", 1, connection_type=named))

        row = database.row(SsoConnection)
        assert (row.provider, row.type) == shown

    @pytest.mark.parametrize("state", ["draft", "validating", None])
    def test_know_no_other_states(self, tell, tenant, state):
        tell(workos("activated", 1, state=state))

        assert database.row(SsoConnection).state == ("draft" if state == "draft" else "inactive")

    def test_show_the_certificate_that_ends_first(self, tell, tenant):
        tell(
            ACTIVATED,
            RENEWED,
            certificate("renewal_required", 3, "2027-01-01T00:00:00Z", "RequestSigning"),
        )

        assert database.row(SsoConnection).certificate_ends_at == datetime(2027, 1, 1, tzinfo=UTC)

        tell(certificate("renewed", 4, "2028-01-01T00:00:00Z", "RequestSigning"))

        assert database.row(SsoConnection).certificate_ends_at.year == 2027

    def test_of_an_unknown_organization_wait_for_it(self, api, tell, sender):
        rows = tell(ACTIVATED, RENEWED)

        waiting = api.get("/v1/identity/waiting", token=platform_token()).get_json()["data"]
        assert [row.detail for row in rows] == ["kept until the organization is known"] * 2
        assert [(row["kind"], row["object_id"], row["missing"]) for row in waiting] == [
            ("sso_connection", "conn_1", ["organization"])
        ]

        organization = {"object": "organization", "id": "org_1", "name": "Acme"}
        at = "2026-01-05T09:30:00Z"
        event = {"event": "organization.created", "id": "event_o", "created_at": at}
        sender.deliver("workos", {**event, "data": {**organization, "updated_at": at}})

        row = database.row(SsoConnection)
        assert (row.state, row.certificate_ends_at.year) == ("active", 2027)
        assert not any(one.is_waiting for one in all_rows(IdentityObject))

    def test_wait_for_a_tenant_that_is_made_here(self, app, tell):
        tell(ACTIVATED)
        tenant = create_tenant(idp_org_id="org_1")

        with app.app_context():
            inbox.apply_waiting_memberships()

        assert database.row(SsoConnection).tenant_id == tenant.id

    def test_without_an_organization_make_nothing(self, tell, tenant):
        (row,) = tell(workos("activated", 1, organization_id=None))

        assert (row.status, database.rows(SsoConnection)) == ("succeeded", [])

    def test_in_the_generic_form_do_the_same(self, sender: Sender, tenant):
        data = {"id": "c1", "organization_id": "org_1", "name": "Sign-in", "type": "oidc"}
        end = "2027-06-28T00:00:00Z"
        sender.tell("connection.created", provider="Entra", state="draft", **data)
        sender.tell("connection.updated", "09:10", state="active", certificate_ends_at=end, **data)
        sender.tell("connection.updated", "09:05", domains=["a.example", 7], **data)

        row = database.row(SsoConnection)
        assert (row.source, row.provider, row.type, row.state) == (
            "generic",
            "Entra",
            "oidc",
            "active",
        )
        assert (row.domains, row.certificate_ends_at.year) == (["a.example"], 2027)
        done = ("updated", "activated", "updated")
        assert actions() == [f"sso_connection.{each}" for each in done]

        sender.tell("connection.deleted", "09:20", id="c1")

        assert database.rows(SsoConnection) == []

    def test_with_too_much_store_a_part(self, tell, tenant):
        domains = [{"domain": f"{number}.{'a' * 300}.example"} for number in range(500)]

        tell(workos("activated", 1, domains=domains, name="n" * 9000, connection_type="x" * 900))

        row = database.row(SsoConnection)
        assert (len(row.domains), len(row.name), len(row.provider)) == (100, 255, 255)
        assert max(map(len, row.domains)) == 255


class TestCertificates:
    def announce(self, app):
        with app.app_context():
            jobs.announce_certificates()
        return [row for row in all_rows(AuditEvent) if row.action.endswith("certificate_expiring")]

    def test_that_end_soon_are_announced_once(self, app, tenant):
        end = utcnow() + timedelta(days=29)
        row = create_sso_connection(tenant.id, certificate_ends_at=end)
        create_sso_connection(tenant.id, certificate_ends_at=utcnow() + timedelta(days=31))
        create_sso_connection(tenant.id, certificate_ends_at=end, state="inactive")
        create_sso_connection(tenant.id)

        assert [event.target_id for event in self.announce(app)] == [str(row.id)]
        assert len(self.announce(app)) == 1

    def test_that_are_renewed_are_announced_again(self, app, tell, tenant):
        ends = [(utcnow() + timedelta(days=days)).isoformat() for days in (3, 20)]
        tell(ACTIVATED, certificate("renewal_required", 2, ends[0]))
        self.announce(app)

        tell(certificate("renewed", 3, ends[1]))

        assert len(self.announce(app)) == 2
        assert len(self.announce(app)) == 2

    def test_are_events_for_the_tenant(self, app, api, tenant):
        create_sso_connection(tenant.id, certificate_ends_at=utcnow() + timedelta(days=1))

        self.announce(app)

        _, *stored = database.query("SELECT type, data FROM event_outbox ORDER BY number")
        assert [row.type for row in stored] == ["sso_connection.certificate_expiring"]
        assert "announced_end" not in stored[0].data


class TestReads:
    @pytest.fixture
    def row(self, tenant):
        return create_sso_connection(tenant.id)

    @pytest.mark.parametrize(
        ("role", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("viewer", 403)]
    )
    def test_are_for_who_manages_the_tenant(self, api, tenant, row, role, status):
        token = user_token(create_member(tenant, role)[0])

        assert api.get(PATH, token=token).status_code == status
        assert api.get(f"{PATH}/{row.id}", token=token).status_code == status

    def test_are_of_the_own_tenant(self, api, row):
        token = user_token(create_member(create_tenant(), "owner")[0])

        answer = api.get(f"{PATH}/{row.id}", token=token)

        assert api.get(PATH, token=token).get_json()["data"] == []
        assert (answer.status_code, answer.get_json()["code"]) == (404, "sso_connection_not_found")

    def test_are_filtered(self, api, tenant, row):
        draft = create_sso_connection(tenant.id, state="draft")

        shown = api.get(f"{PATH}?state=draft", token=platform_token()).get_json()["data"]

        assert [one["id"] for one in shown] == [str(draft.id)]
