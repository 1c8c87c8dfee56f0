"""Roles in the console: the matrix, a role and who has it, a person's access, permissions."""

import html
import re

import pytest

from app.auth.permissions import Permission
from app.roles.models import ProductPermission, RoleAssignment
from tests import database
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_resource,
    create_tenant,
)
from tests.factories import create_role as create_role_row
from tests.roles.test_role_assignments import create_group

NAMES = ("invoices:approve", "invoices:read")


@pytest.fixture
def tenant():
    return create_tenant(slug="acme")


@pytest.fixture
def page(tenant):
    return f"/console/tenants/{tenant.id}/roles"


@pytest.fixture
def permissions(browser):
    for key in NAMES:
        sent = browser.send("/console/roles/permissions/new", key=key, group="Invoices")
        assert sent.status_code == 303, sent.text


@pytest.fixture
def owner(signed_in, tenant):
    return signed_in(create_member(tenant, "owner")[0])


def create_role(browser, page, key="clerk", **values):
    given = {"key": key, "name": key.capitalize(), "inherits": "", "assignable_by": "admin"}
    sent = browser.send(f"{page}/new", **given | values)
    assert sent.status_code == 303, sent.text
    return sent.location


def stored(key="clerk"):
    return database.query("SELECT permissions FROM roles WHERE key = :key", key=key)[0][0]


def boxes(text):
    """The matrix as a form sends it: what it hides, and the boxes that are checked."""
    form = text.partition('<form method="post">')[2].partition("</form>")[0]
    found = re.findall(r'<input type="(\w+)" name="([^"]+)" value="([^"]*)"( checked)?', form)
    data = {}
    for kind, name, value, checked in found:
        if kind == "hidden" or checked:
            data.setdefault(name, []).append(html.unescape(value))
    return data


class TestMatrix:
    def test_changes_the_roles_whose_boxes_were_changed(self, owner, page, permissions):
        first, second = (create_role(owner, page, key).rpartition("/")[2] for key in ("a", "b"))
        data = boxes(owner.get(page).text)

        sent = owner.post(page, data=data | {f"role_{first}": [*NAMES]})

        assert sent.status_code == 303
        assert "Changed: A." in owner.get(page).text
        assert (stored("a"), stored("b")) == ([*NAMES], [])
        assert f"shown_{second}" not in data

    def test_keeps_what_somebody_else_changed_meanwhile(self, owner, page, permissions):
        role = create_role(owner, page, permissions=[NAMES[0]])
        name = f"role_{role.rpartition('/')[2]}"
        seen = boxes(owner.get(page).text)
        owner.post(page, data=boxes(owner.get(page).text) | {name: ["users:read", NAMES[0]]})

        owner.post(page, data=seen | {name: [NAMES[1]]})

        assert stored() == [NAMES[1], "users:read"]

    def test_shows_what_is_inherited_and_templates_without_boxes(self, owner, page, permissions):
        create_role(owner, page, "base", permissions=[NAMES[0]])
        create_role(owner, page, inherits="base")
        text = owner.get(page).text

        assert '<span class="quiet">by Base</span>' in text
        assert 'aria-label="Clerk: users:read"' in text
        assert 'aria-label="Owner: ' not in text
        assert 'aria-label="Viewer: ' not in text

    def test_of_templates_is_the_platforms(self, browser, permissions):
        text = browser.get("/console/roles").text
        found = database.query("SELECT id FROM roles WHERE key <> 'owner'")  # the ranks stay true
        data = boxes(text) | {f"role_{role}": [NAMES[1]] for (role,) in found}

        assert browser.post("/console/roles", data=data).status_code == 303
        assert NAMES[1] in stored("viewer")
        assert "users:read" in stored("viewer")
        assert 'aria-label="Viewer: users:read"' not in text
        assert 'aria-label="Owner: invoices:read"' not in text

    def test_says_what_was_refused_and_shows_the_boxes_as_typed(self, signed_in, tenant, page):
        create_role(signed_in(), page)
        ((role_id,),) = database.query("SELECT id FROM roles WHERE key = 'clerk'")
        person, membership, _ = create_member(tenant, "viewer")
        keeper = create_role(
            signed_in(), page, "keeper", assignable_by="viewer",
            permissions=["roles:read", "roles:write"],
        )  # fmt: skip
        signed_in().send(f"{page}/assign", role="keeper", membership_id=str(person.id))
        browser = signed_in(person)

        data = boxes(browser.get(page).text) | {f"role_{role_id}": ["users:write"]}
        sent = browser.post(page, data=data)

        assert sent.status_code == 422, keeper
        assert "Clerk: " in sent.text.partition('role="alert"')[2]
        assert re.search(r'value="users:write" checked aria-label="Clerk', sent.text)
        assert stored() == []
        assert membership

    def test_of_many_permissions_shows_a_group(self, owner, page, permissions, monkeypatch):
        monkeypatch.setattr("app.console.pages.roles.MOST", 10)

        first, other = owner.get(page).text, owner.get(f"{page}?group=Invoices").text

        assert NAMES[0] in other
        assert 'title="Read users.' not in other
        assert NAMES[0] in first or 'title="' in first


class TestRole:
    def test_is_created_changed_and_deleted(self, owner, page, permissions):
        role = create_role(owner, page, permissions=[NAMES[0]], inherits="viewer")

        sent = owner.send(
            f"{role}/edit", name="Clerks", inherits="", assignable_by="owner", permissions=[*NAMES]
        )
        assert sent.status_code == 303, sent.text
        assert stored() == [*NAMES]
        owner.undo(role)
        assert stored() == [NAMES[0]]
        assert owner.send(f"{role}/delete").location.endswith("/roles")
        assert database.query("SELECT 1 FROM roles WHERE key = 'clerk'") == []

    def test_that_is_in_use_needs_another_in_its_place(self, owner, tenant, page):
        role, person = create_role(owner, page), create_member(tenant, "member")[0]
        create_role(owner, page, "other")
        owner.send(f"{page}/assign", role="clerk", membership_id=str(person.id))

        refused = owner.send(f"{role}/delete")
        replaced = owner.send(f"{role}/delete", replace_with="other")

        assert refused.status_code == 409
        assert 'role="alert"' in refused.text
        assert replaced.status_code == 303
        assert "Other" in owner.get(f"{page}").text
        assert database.row(RoleAssignment).role_id == database.query(
            "SELECT id FROM roles WHERE key = 'other'"
        )[0][0]  # fmt: skip

    def test_as_the_platforms_is_a_template(self, browser):
        create_role(browser, "/console/roles")

        assert database.query("SELECT tenant_id FROM roles WHERE key = 'clerk'") == [(None,)]


class TestAssignments:
    def test_show_who_has_it_from_where_on_what_and_until_when(self, owner, tenant, page):
        role = create_role(owner, page)
        person = create_member(tenant, "member", first_name="Ines", last_name="Okafor")[0]
        create_api_key(tenant, [Permission.USERS_READ], name="sync")
        ((key_id,),) = database.query("SELECT id FROM api_keys")
        started = f"{page}/assign?next={role}"

        one = owner.send(
            started, role="clerk", membership_id=str(person.id), expires_at="2099-12-07T21:00"
        )
        other = owner.send(started, role="clerk", api_key_id=str(key_id), membership_id="")

        assert (one.location, other.location) == (role, role)
        text = owner.get(role).text
        assert "Ines Okafor" in text
        assert "sync" in text
        assert "whole tenant" in text
        assert "here or the API" in text

    def test_are_added_and_removed_on_the_page_of_a_person(self, owner, tenant, page):
        create_role(owner, page)
        person = create_member(tenant, "member")[0]
        access = f"/console/tenants/{tenant.id}/users/{person.id}/access"
        link = html.unescape(re.search(r'href="([^"]+/assign\?[^"]+)"', owner.get(access).text)[1])

        assigned = owner.send(link, role="clerk", membership_id=str(person.id))
        shown = owner.get(access).text
        link = html.unescape(re.search(r'href="([^"]+/remove\?[^"]+)"', shown)[1])
        removed = owner.send(link)

        assert (assigned.location, removed.location) == (access, access)
        assert "The role was removed." in owner.get(access).text
        assert database.query("SELECT 1 FROM role_assignments") == []

    @pytest.mark.parametrize("values", [{}, {"membership_id": "nobody"}, {"resource_id": "x"}])
    def test_that_say_too_little_are_explained(self, owner, page, values):
        create_role(owner, page)

        sent = owner.send(f"{page}/assign", role="clerk", **values)

        assert sent.status_code in (404, 422)
        assert 'role="alert"' in sent.text


class TestAccess:
    def test_lists_the_roles_of_the_person_and_of_their_groups(self, owner, tenant):
        person, membership, _ = create_member(tenant, "viewer")
        place = create_resource(tenant, "project", "apollo")
        role, group = create_role_row(tenant, key="clerk"), create_group(tenant, person)
        create_assignment(tenant, role, group_id=group.id, resource=place)
        create_assignment(tenant, "billing", membership_id=membership.id, source="idp")

        text = owner.get(f"/console/tenants/{tenant.id}/users/{person.id}/access").text

        of_group, own = re.findall("<tr><td.*?</tr>", text, re.DOTALL)
        assert "by the group</span> Crew" in of_group
        assert "project <code>apollo</code>" in of_group
        assert "Remove" not in of_group
        assert "identity provider" in own
        assert "Remove" in own

    def test_of_a_person_is_explained_with_all_steps(self, owner, tenant):
        person = create_member(tenant, "viewer")[0]
        page = f"/console/tenants/{tenant.id}/users/{person.id}/access"

        refused = owner.get(f"{page}?permission=users:write").text
        allowed = owner.get(f"{page}?permission=users:read").text

        assert "<strong>Refused</strong>" in refused
        assert "<strong>Allowed</strong>" in allowed
        assert allowed.count('<span class="step">') >= 5

    def test_to_a_resource_follows_from_a_role_above_it(self, owner, tenant, permissions):
        person, membership, _ = create_member(tenant, "viewer")
        role = create_role_row(tenant, NAMES[0], key="clerk")
        above = create_resource(tenant, "folder", "space")
        create_resource(tenant, "project", "apollo", parent=above)
        create_assignment(tenant, role, membership_id=membership.id, resource=above)
        page = f"/console/tenants/{tenant.id}/users/{person.id}/access?permission={NAMES[0]}"

        refused = owner.get(page).text
        allowed = owner.get(f"{page}&resource_type=project&resource_id=apollo").text

        assert "<strong>Refused</strong>" in refused
        assert "<strong>Allowed</strong>" in allowed
        assert f"The role clerk has the permission {NAMES[0]} on folder space." in allowed

    def test_of_a_permission_that_does_not_exist_is_no_error(self, owner, tenant):
        person = create_member(tenant, "viewer")[0]
        page = f"/console/tenants/{tenant.id}/users/{person.id}/access"

        assert (
            owner.get(f"{page}?permission=no:such&resource_type=a&resource_id=b").status_code == 200
        )


class TestPermissions:
    def test_are_created_changed_and_deleted(self, browser):
        page = "/console/roles/permissions"
        values = {"description": "Approve invoices.", "group": "Invoices"}

        browser.send(f"{page}/new", key=NAMES[0], **values)
        again = browser.send(f"{page}/new", key=NAMES[0], **values)
        browser.send(f"{page}/{NAMES[0]}/edit", **values, requires_flag="invoicing")
        shown = browser.get(page).text
        flag = database.row(ProductPermission).requires_flag
        browser.send(f"{page}/{NAMES[0]}/delete", form_confirmation=NAMES[0])

        assert again.status_code == 422
        assert "Approve invoices." in shown
        assert flag == "invoicing"
        assert database.query("SELECT 1 FROM product_permissions") == []
