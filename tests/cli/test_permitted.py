"""Commands with a credential that may read little: ``controlplane`` with an API key."""

import json

import pytest
from click.testing import CliRunner

from app.surfaces.commands.operation_groups import OperationGroup
from app.surfaces.in_process import InProcess, operations
from tests.factories import create_api_key, create_member, create_tenant

EMAIL = "ada@acme.example"


@pytest.fixture
def tenant(app):
    tenant = create_tenant(slug="acme")
    create_member(tenant, email=EMAIL)
    return tenant


@pytest.fixture
def run(app, tenant):
    """Runs a command with a key of the tenant that has these permissions."""

    def invoke(*words, permissions):
        key = create_api_key(tenant, permissions=permissions)

        class Group(OperationGroup):
            def operations(self, ctx):
                return operations(app)

            def connect(self, ctx):
                return InProcess(app.wsgi_app, {"HTTP_AUTHORIZATION": f"Bearer {key}"})

        group, *rest = words
        return CliRunner().invoke(Group(group), rest)

    return invoke


class TestIncludes:
    """A command asks for related rows by itself; the permissions of these are not required."""

    def test_that_are_not_permitted_have_no_columns(self, run):
        listed = run("users", "list", permissions=["users:read"])
        audited = run("audit", "list", permissions=["audit:read"])
        as_json = run("users", "list", "--all", "--json", permissions=["users:read"])

        assert [one.exit_code for one in (listed, audited, as_json)] == [0, 0, 0]
        assert (EMAIL in listed.stdout, "tenant.slug" in listed.stdout) == (True, False)
        assert [one["email"] for one in json.loads(as_json.stdout)] == [EMAIL]

    def test_that_are_permitted_are_kept(self, run):
        one = run("memberships", "list", permissions=["memberships:read", "users:read"])
        none = run("memberships", "list", permissions=["memberships:read"])

        assert ("user.email" in one.stdout, "tenant.slug" in one.stdout) == (True, False)
        assert (none.exit_code, "user.email" in none.stdout) == (0, False)

    def test_that_were_asked_for_are_refused(self, run):
        ended = run("users", "list", "--include", "tenant", permissions=["users:read"])

        assert ended.stderr == "Error: This needs the permission tenants:read.\n"

    def test_are_not_needed_for_a_question(self, run):
        permissions = ["users:read", "users:write"]

        ended = run("users", "deactivate", EMAIL, permissions=permissions)

        assert ended.stderr.startswith(f"Deactivate a user: {EMAIL}?")


class TestATenant:
    def test_can_be_named_by_its_id(self, run, tenant):
        for words in ("users list", f"users show {EMAIL}"):
            listed = run(*words.split(), "--tenant", str(tenant.id), permissions=["users:read"])

            assert (listed.exit_code, EMAIL in listed.stdout) == (0, True)

    def test_that_the_credential_cannot_find_is_refused_with_advice(self, run):
        for permissions in (["flags:read"], ["users:read"]):
            ended = run("flags", "list", "--tenant", "acme", permissions=permissions)

            told = "Error: This credential cannot find acme: give the tenant's id.\n"
            assert (ended.exit_code, ended.stderr) == (1, told)

    def test_can_be_named_by_its_slug_where_it_is_permitted(self, run):
        permissions = ["flags:read", "users:read", "tenants:read"]

        assert run("flags", "list", "--tenant", "acme", permissions=permissions).exit_code == 0
