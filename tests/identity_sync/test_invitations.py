"""Invitations of the identity provider, which arrive by webhooks."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from app.audit.models import AuditEvent
from app.identity_sync.models import IdentityObject
from app.inbox import jobs
from app.invitations.models import Invitation
from tests import database
from tests.conformance.webhook_samples import changed
from tests.factories import create_member, create_tenant, create_user, platform_token
from tests.inbox.sending import Sender, all_rows
from tests.invitations.test_accept import seats

PATH = "/v1/invitations"
ORG = "org_01WRJD8T6V88KDXQNAK5K37PSQ"
PERSON = "user_01MRQQ0FPEVZ3TQ2MYXYRHSQ0X"


def workos(event: str, minute: int, **data: Any) -> dict[str, Any]:
    """The recorded invitation in another state, at this minute after nine."""
    at = f"2026-01-05T09:{minute:02}:00.000Z"
    said = {"state": "pending", "accepted_user_id": None, "updated_at": at, **data}
    said["expires_at"] = f"2099-01-{minute:02}T00:00:00Z"
    values = {f"data__{name}": value for name, value in said.items()}
    names = {"event": f"invitation.{event}", "id": f"event_{event}", "created_at": at}
    return changed("workos", "invitation.accepted", **names, **values)


CREATED, RESENT = workos("created", 1), workos("resent", 2)
ACCEPTED = workos("accepted", 3, state="accepted", accepted_user_id=PERSON)
REVOKED = workos("revoked", 4, state="revoked")


@pytest.fixture
def tell(sender: Sender):
    return lambda *events: [sender.deliver("workos", event) for event in events]


@pytest.fixture
def tenant(app):
    return create_tenant(idp_org_id=ORG)


@pytest.fixture
def shown(api):
    def read() -> dict[str, Any]:
        (row,) = api.get(PATH, token=platform_token()).get_json()["data"]
        return row

    return read


def actions() -> list[str]:
    return [row.action for row in all_rows(AuditEvent) if row.target_type == "invitation"]


class TestWorkOS:
    def test_an_invitation_is_the_same_resource(self, tell, tenant, shown):
        tell(CREATED)

        row = shown()
        assert (row["source"], row["idp_invitation_id"]) == (
            "workos",
            "invitation_01Z5QWG9HZEFTR7DV6NBB4W884",
        )
        assert (row["email"], row["role"]) == ("zoe.angstrom@northwind-labs.example", "member")
        assert (row["state"], row["expires_at"]) == ("pending", "2099-01-01T00:00:00Z")
        assert database.row(Invitation).digest is None

    def test_has_an_event_for_each_step(self, tell, tenant):
        tell(CREATED, RESENT, ACCEPTED)

        assert actions() == ["invitation.created", "invitation.resent", "invitation.accepted"]

    @pytest.mark.parametrize("last", [ACCEPTED, REVOKED])
    def test_in_any_order_and_twice_ends_the_same(self, tell, tenant, shown, last):
        user, _, _ = create_member(tenant, idp_user_id=PERSON)
        ends = set()
        for order in itertools.permutations([CREATED, RESENT, last]):
            database.execute("DELETE FROM webhook_events")
            database.execute("DELETE FROM identity_objects")
            database.execute("DELETE FROM invitations")

            tell(*order, *order)

            row = shown()
            ends.add((row["state"], row["accepted_at"], row["revoked_at"], row["user_id"]))

        accepted = ("accepted", "2026-01-05T09:03:00Z", None, str(user.id))
        revoked = ("revoked", None, "2026-01-05T09:04:00Z", None)
        assert ends == {accepted if last is ACCEPTED else revoked}

    def test_after_its_end_nothing_brings_it_back(self, tell, tenant, shown):
        tell(REVOKED)

        statuses = [row.status for row in tell(CREATED, RESENT, ACCEPTED)]

        assert statuses == ["ignored", "ignored", "succeeded"]  # the last one names a user
        assert shown()["state"] == "revoked"

    def test_names_the_user_who_comes_after_it(self, sender, tell, tenant, shown):
        tell(ACCEPTED)
        assert (shown()["state"], shown()["user_id"]) == ("accepted", None)

        sender.deliver_sample("workos", "user.created")
        sender.deliver_sample("workos", "organization_membership.created")

        (user,) = database.query("SELECT id FROM users")
        assert shown()["user_id"] == str(user.id)
        assert not any(row.is_waiting for row in all_rows(IdentityObject))

    def test_names_a_user_who_is_made_here(self, app, api, tell, tenant, shown):
        tell(ACCEPTED)
        user = create_user(tenant, idp_user_id=PERSON)

        with app.app_context():
            jobs.apply_waiting_memberships()

        assert shown()["user_id"] == str(user.id)

    def test_waits_for_an_organization(self, api, sender, tell):
        rows = tell(CREATED)

        (waiting,) = api.get("/v1/identity/waiting", token=platform_token()).get_json()["data"]
        assert rows[0].detail == "kept until the organization is known"
        assert (waiting["kind"], waiting["missing"]) == ("invitation", ["organization"])
        assert "angstrom" not in str(waiting)

        sender.deliver_sample("workos", "organization.created")

        assert database.row(Invitation).email == "zoe.angstrom@northwind-labs.example"

    def test_of_no_organization_is_not_kept(self, tell, tenant):
        tell(workos("created", 1, organization_id=None))

        assert database.rows(Invitation) == []

    def test_takes_a_seat_until_it_ends(self, tell, tenant):
        taken = []
        for event in (CREATED, RESENT, REVOKED):
            tell(event)
            taken.append(seats(tenant))

        assert taken == [1, 1, 0]

    @pytest.mark.parametrize("email", [None, "", "not an address", 7])
    def test_without_an_address_is_not_kept(self, tell, tenant, email):
        (row,) = tell(workos("created", 1, email=email))

        assert (row.status, database.rows(Invitation)) == ("succeeded", [])

    def test_maps_its_role(self, app, tell, tenant, shown):
        tell(workos("created", 1, role_slug="admin"))

        assert shown()["role"] == "admin"


class TestClerk:
    @pytest.mark.parametrize(
        ("step", "state"),
        [("created", "expired"), ("accepted", "accepted"), ("revoked", "revoked")],
    )
    def test_each_recorded_event_is_applied(self, sender, shown, step, state):
        tenant = create_tenant(idp_org_id="org_3yOVW2Xu823dNzfGoTIpZBLw3g0")

        sender.deliver_sample("clerk", f"organizationInvitation.{step}")

        row = shown()
        assert (row["tenant_id"], row["source"], row["state"]) == (str(tenant.id), "clerk", state)
        assert (row["email"], row["role"]) == ("new.hire@acier.example", "member")


class TestGeneric:
    def test_is_told_in_parts(self, sender: Sender, tenant, shown):
        sender.tell("invitation.created", id="i1", organization_id=ORG, role="admin")
        assert database.rows(Invitation) == []
        sender.tell("invitation.updated", "09:10", id="i1", email="ada@acme.example")

        row = database.row(Invitation)
        assert (row.email, row.role) == ("ada@acme.example", "admin")
        assert row.expires_at == datetime(2026, 1, 12, 9, 10, tzinfo=UTC)

        sender.tell("invitation.deleted", "09:20", id="i1")

        assert shown()["state"] == "revoked"

    def test_that_was_accepted_stays_so(self, sender: Sender, tenant, shown):
        names = {"id": "i1", "organization_id": ORG, "email": "ada@acme.example"}
        sender.tell("invitation.updated", state="accepted", **names)
        sender.tell("invitation.deleted", "09:20", id="i1")

        assert shown()["state"] == "accepted"
