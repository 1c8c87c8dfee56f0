"""Roles of the identity provider that are none of the five: assignments with the source ``idp``."""

from dataclasses import replace

import pytest

from app.audit.models import AuditEvent
from app.memberships.models import Membership
from app.roles.models import AccessRole, RoleAssignment
from app.tenants.models import Tenant
from tests.database import execute, row, rows
from tests.factories import create_assignment, create_role, create_tenant

ACTIONS = ("role_assignment.created", "role_assignment.deleted")


@pytest.fixture
def tell(sender):
    return sender.tell


@pytest.fixture
def tenant(tell):
    """Acme with Ada, who is a member."""
    tell("organization.created", id="o1", name="Acme")
    tell("user.created", id="u1", email="ada@acme.example")
    tell("membership.created", organization_id="o1", user_id="u1", role="member")
    return row(Tenant)


@pytest.fixture
def say(tell):
    """Say Ada's role."""

    def event(at, role, **data):
        tell("membership.updated", at, organization_id="o1", user_id="u1", role=role, **data)

    return event


def assigned():
    """The keys of Ada's roles, with their sources."""
    keys = {role.id: role.key for role in rows(AccessRole)}
    return {keys[one.role_id]: one.source for one in rows(RoleAssignment)}


class TestAKeyOfTheTenantsRole:
    def test_is_assigned_and_removed_as_the_provider_says(self, api, tenant, say):
        create_role(tenant, "audit:read", key="auditor")
        create_role(tenant, key="clerk")
        found = []

        for at, role in (("10:00", "auditor"), ("11:00", "clerk"), ("12:00", "admin")):
            say(at, role)
            found.append((assigned(), row(Membership).role))

        assert found == [
            ({"auditor": "idp"}, "member"),
            ({"clerk": "idp"}, "member"),
            ({}, "admin"),
        ]
        events = [one for one in rows(AuditEvent) if one.action in ACTIONS]
        assert [one.action.rpartition(".")[2] for one in events].count("created") == 2
        assert {one.actor for one in events} == {"system:idp"}

    def test_is_assigned_with_the_membership_that_it_comes_with(self, tell, tenant):
        create_role(tenant, key="auditor")
        membership = {"organization_id": "o1", "user_id": "u2", "role": "auditor"}

        tell("membership.created", **membership)
        assert assigned() == {}
        tell("user.created", id="u2", email="bob@acme.example")

        assert assigned() == {"auditor": "idp"}

    @pytest.mark.parametrize("name", ["org:auditor", "reviewer"])
    def test_may_have_clerks_prefix_or_be_mapped(self, app, monkeypatch, tenant, say, name):
        config = replace(app.extensions["config"], idp_role_map={"reviewer": "auditor"})
        monkeypatch.setitem(app.extensions, "config", config)
        create_role(tenant, key="auditor")

        say("10:00", name)

        assert assigned() == {"auditor": "idp"}

    def test_of_a_template_is_assigned_too(self, tenant, say):
        create_role(None, key="auditor")

        say("10:00", "auditor")

        assert assigned() == {"auditor": "idp"}

    @pytest.mark.parametrize(
        ("permission", "assignable_by"), [("users:read", "owner"), ("invoices:approve", "admin")]
    )
    def test_that_an_admin_could_not_assign_is_not(self, tenant, say, permission, assignable_by):
        create_role(None, permission, key="auditor", assignable_by=assignable_by)

        say("10:00", "auditor")

        assert assigned() == {}

    def test_of_another_tenant_is_not(self, tenant, say):
        create_role(create_tenant(), key="auditor")

        say("10:00", "auditor")

        assert assigned() == {}
        assert row(Membership, tenant_id=tenant.id).role == "member"


class TestAssignmentsMadeHere:
    def test_stay_whatever_the_provider_says(self, tenant, say):
        role = create_role(tenant, key="auditor")
        create_assignment(tenant, role, membership_id=row(Membership).id)

        say("10:00", "auditor")
        say("11:00", "member")

        assert assigned() == {"auditor": "api"}

    def test_that_were_removed_do_not_come_back_by_a_repeated_event(self, tenant, say):
        create_role(tenant, key="auditor")
        say("10:00", "auditor")
        execute("DELETE FROM role_assignments")

        say("11:00", "auditor")

        assert assigned() == {}

    def test_come_in_any_order_to_the_same(self, tenant, say):
        create_role(tenant, key="auditor")

        say("11:00", "auditor")
        say("10:00", "member")

        assert assigned() == {"auditor": "idp"}
