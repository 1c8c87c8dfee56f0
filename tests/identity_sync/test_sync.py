"""From identity events to tenants, users and memberships."""

from dataclasses import replace
from typing import Any

import pytest

from app.audit.models import AuditEvent
from app.identity_sync.models import IdentityObject
from app.inbox import jobs
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests import database, factories
from tests.conformance.webhook_samples import document
from tests.inbox.sending import Sender, all_rows

ORG = "org_01WRJD8T6V88KDXQNAK5K37PSQ"
USER = "user_01MRQQ0FPEVZ3TQ2MYXYRHSQ0X"


def one(model: Any) -> Any:
    (row,) = all_rows(model)
    return row


@pytest.fixture
def generic(sender: Sender):
    return sender.tell


@pytest.fixture
def map_roles(app, monkeypatch):
    """Configure the roles of the names that the provider sends."""

    def configure(**roles: str) -> None:
        config = replace(app.extensions["config"], idp_role_map=roles)
        monkeypatch.setitem(app.extensions, "config", config)

    return configure


@pytest.fixture
def owner(generic):
    """Acme with Ada as its owner, all made by events at nine."""
    generic("organization.created", "09:00", id="o1", name="Acme")
    generic("user.created", "09:00", id="u1", email="ada@acme.example", name="Ada Lovelace")
    generic("membership.created", "09:00", organization_id="o1", user_id="u1", role="owner")


class TestThreeEventsInAnyOrder:
    NAMES = ("organization.created", "user.created", "organization_membership.created")

    @pytest.mark.parametrize("order", ["012", "120", "210"])
    def test_make_a_tenant_a_user_and_a_membership(self, sender, order):
        rows = [sender.deliver_sample("workos", self.NAMES[int(n)]) for n in order]

        assert [row.status for row in rows] == ["succeeded"] * 3
        tenant, user, membership = one(Tenant), one(User), one(Membership)
        assert (tenant.idp_org_id, tenant.name, tenant.slug) == (
            ORG,
            "Northwind Labs",
            "northwind-labs",
        )
        assert (tenant.is_active, tenant.plan_name) == (True, "free")
        assert (user.idp_user_id, user.tenant_id, user.idp_org_id) == (USER, tenant.id, ORG)
        assert (user.first_name, user.last_name) == ("Zoë", "Ångström")
        assert user.created_by_user_id == "system:idp"
        assert (membership.user_id, membership.role) == (user.id, "member")
        assert membership.idp_membership_id == "om_012K6DA49NJNV812ZG1H4B053H"
        assert membership.is_active is False  # pending: an invitation

    def test_carry_the_request_id_of_their_delivery(self, sender):
        body = document("workos", "organization.created")

        sender.deliver("workos", body, headers={"X-Request-Id": "delivery-1"})

        assert one(AuditEvent).request_id == "delivery-1"


class TestOrganizations:
    def test_follow_the_slug_that_the_provider_gives(self, generic):
        generic("organization.created", "09:00", id="o1", name="Acme", slug="acme-inc")
        generic("organization.updated", "10:00", id="o1", slug="acme-group")

        assert one(Tenant).slug == "acme-group"

    def test_that_are_given_the_slug_of_another_get_a_numbered_one(self, generic):
        generic("organization.created", "09:00", id="o1", name="Acme", slug="acme")
        generic("organization.created", "09:00", id="o2", name="Birch", slug="birch")
        generic("organization.updated", "10:00", id="o2", slug="acme")

        assert [tenant.slug for tenant in all_rows(Tenant)] == ["acme", "acme-2"]

    def test_with_the_name_of_another_get_a_numbered_slug(self, generic):
        generic("organization.created", "09:00", id="o1", name="Acme")
        generic("organization.created", "09:00", id="o2", name="Acme")

        assert [tenant.slug for tenant in all_rows(Tenant)] == ["acme", "acme-2"]

    def test_keep_what_their_tenant_was_given_by_hand(self, sender, generic):
        tenant = factories.create_tenant(idp_org_id="o1", slug="by-hand", is_active=False)

        generic("organization.created", "09:00", id="o1", name="Acme")

        changed = one(Tenant)
        assert changed.id == tenant.id
        assert (changed.name, changed.slug, changed.is_active) == ("Acme", "by-hand", False)


class TestUsers:
    def test_may_have_the_address_of_another_user(self, owner, generic):
        for number, email in enumerate(["ADA@acme.example", "bob@acme.example"], 2):
            generic("user.created", "09:00", id=f"u{number}", email=email)
            generic("membership.created", "09:00", organization_id="o1", user_id=f"u{number}")

        row = generic("user.updated", "10:00", id="u3", email="Ada@Acme.example")

        assert row.status == "succeeded"
        assert [user.email for user in all_rows(User)] == [
            "ada@acme.example", "ADA@acme.example", "Ada@Acme.example",
        ]  # fmt: skip
        assert {user.email_key for user in all_rows(User)} == {"ada@acme.example"}

    def test_that_come_back_do_not_get_their_memberships_back(self, owner, generic):
        generic("user.deleted", "10:00", id="u1")
        generic("user.created", "11:00", id="u1", email="ada@acme.example")

        assert one(User).is_active is True
        assert one(Membership).is_active is False

        generic("membership.created", "12:00", organization_id="o1", user_id="u1", role="member")

        assert (one(Membership).is_active, one(Membership).role) == (True, "member")

    def test_that_were_made_by_hand_follow_their_events(self, generic):
        tenant = factories.create_tenant(idp_org_id="o1")
        user = factories.create_user(tenant, idp_user_id="u1", email="old@acme.example")
        factories.create_membership(tenant, user, "member")

        generic("user.updated", "10:00", id="u1", email="new@acme.example")

        assert one(User).email == "new@acme.example"

    def test_that_were_deactivated_here_stay_so_when_they_are_only_renamed(self, owner, generic):
        database.execute("UPDATE users SET is_active = false")

        generic("user.updated", "10:00", id="u1", first_name="Augusta")

        assert (one(User).first_name, one(User).is_active) == ("Augusta", False)

    def test_who_are_members_again_get_what_they_missed(self, owner, generic):
        generic("membership.created", "09:05", organization_id="o1", user_id="u2", role="owner")
        generic("user.created", "09:05", id="u2", email="eva@acme.example", name="Eva")
        generic("membership.deleted", "09:10", organization_id="o1", user_id="u1")
        generic("user.updated", "09:20", id="u1", email="ada@new.example", name="Ada Byron")

        generic("membership.created", "09:30", organization_id="o1", user_id="u1", role="member")

        (member,) = all_rows(User, idp_user_id="u1")
        assert (member.email, member.last_name) == ("ada@new.example", "Byron")


class TestMemberships:
    def test_that_wait_are_shown_once_their_tenant_is_made_by_hand(self, app, generic):
        generic("user.created", "09:00", id="u1", email="ada@acme.example")
        generic("membership.created", "09:00", organization_id="o1", user_id="u1", role="admin")
        factories.create_tenant(idp_org_id="o1")

        with app.app_context():
            jobs.apply_waiting_memberships()
            jobs.apply_waiting_memberships()

        assert (one(Membership).role, one(Membership).is_active) == ("admin", True)
        assert one(User).email == "ada@acme.example"
        assert not any(row.is_waiting for row in all_rows(IdentityObject))

    def test_that_wait_for_both_go_on_waiting(self, app, generic):
        generic("membership.created", "09:00", organization_id="o1", user_id="u1")
        factories.create_tenant(idp_org_id="o1")

        with app.app_context():
            jobs.apply_waiting_memberships()

        assert all_rows(Membership) == []
        assert one(IdentityObject).is_waiting is True

        generic("user.created", "09:00", id="u1", email="ada@acme.example")

        assert one(Membership).is_active is True

    def test_that_are_made_anew_under_another_id_go_on_in_the_same_row(self, generic, owner):
        generic("membership.created", "09:10", id="m1", organization_id="o1", user_id="u1")
        generic("membership.deleted", "09:20", id="m1")
        generic("membership.deleted", "09:25", organization_id="o1", user_id="u1")
        ended = one(Membership).is_active
        generic("membership.created", "09:30", id="m2", organization_id="o1", user_id="u1")

        assert ended is False
        assert (one(Membership).is_active, one(Membership).idp_membership_id) == (True, "m2")

    def test_that_are_repeated_do_not_undo_a_role_given_here(self, owner, generic):
        database.execute("UPDATE memberships SET role = 'viewer'")

        generic("membership.updated", "10:00", organization_id="o1", user_id="u1", role="owner")

        assert one(Membership).role == "viewer"

    def test_have_the_highest_role_of_several(self, map_roles, generic, owner):
        map_roles(**{"org:controller": "billing"})
        pair = {"organization_id": "o1", "user_id": "u1"}

        generic("membership.updated", "10:00", **pair, roles=["member", "admin", "org:controller"])
        several = one(Membership).role
        generic("membership.updated", "11:00", **pair, role="org:controller")

        assert (several, one(Membership).role) == ("admin", "billing")


MADE = [
    "organization.created", "user.created", "organization.member.added",
    "organization.member.role.assigned",
]  # fmt: skip


class TestAuth0Roles:
    def deliver(self, sender, *names: str) -> None:
        for name in names:
            sender.deliver_sample("auth0", name)

    def test_end_with_the_membership(self, map_roles, sender):
        map_roles(**{"billing-admin": "admin"})
        self.deliver(sender, *MADE, "organization.member.deleted")
        again = document("auth0", "organization.member.added")
        again |= {"id": "evt_again", "time": "2026-01-07T00:00:00Z"}

        sender.deliver("auth0", again)

        assert (one(Membership).role, one(Membership).is_active) == ("member", True)


class TestLateAndRepeated:
    def test_the_same_change_under_another_id_changes_no_row(self, owner, generic):
        before = one(User).version

        generic("user.created", "09:00", id="u1", email="ada@acme.example", name="Ada Lovelace")

        assert one(User).version == before
