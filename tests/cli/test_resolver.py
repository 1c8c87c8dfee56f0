"""Rows are named by what people know of them."""

import json

import pytest

from tests.factories import (
    create_invitation,
    create_member,
    create_override,
    create_preset,
    create_role,
    create_subscription,
    create_tenant,
    create_user,
)


@pytest.fixture
def run(app):
    def invoke(*words):
        return app.test_cli_runner().invoke(args=[*map(str, words)], prog_name="flask")

    return invoke


@pytest.fixture
def shown(run):
    """The id of what a command shows."""

    def invoke(*words):
        ended = run(*words, "--json")
        assert ended.exit_code == 0, ended.output
        return json.loads(ended.stdout)["id"]

    return invoke


def test_a_tenant_by_slug_id_or_idp_org_id(app, shown):
    tenant = create_tenant(slug="acme", idp_org_id="org_acme")

    for name in ("acme", "org_acme", tenant.id, tenant.id.hex):
        assert shown("tenants", "show", name) == str(tenant.id)


def test_a_user_by_address_id_or_idp_user_id(app, shown):
    user = create_user(create_tenant(), email="ada@acme.example", idp_user_id="auth|ada")

    for name in ("ada@acme.example", "ADA@acme.example", user.id, "auth|ada"):
        assert shown("users", "show", name) == str(user.id)


def test_a_membership_by_its_members_address(app, shown):
    user, membership, _ = create_member(create_tenant(slug="acme"))

    for name in (user.email, user.idp_user_id, membership.id):
        assert shown("memberships", "show", name) == str(membership.id)


def test_a_plan_a_subscription_and_an_override(app, shown):
    preset, tenant = create_preset("free", beta=False), create_tenant(slug="acme")
    subscription = create_subscription(tenant, bp_subscription_id="sub_1")
    override = create_override(tenant, preset, "beta", True)

    assert shown("plans", "show", "free") == str(preset.id)
    assert shown("subscriptions", "show", "sub_1") == str(subscription.id)
    assert shown("flags", "show-override", "beta", "--tenant", "acme") == str(override.id)


def test_a_role_by_key_and_an_invitation_by_address(app, shown):
    acme, other = create_tenant(slug="acme"), create_tenant(slug="initech")
    role, _ = (create_role(tenant, key="analyst") for tenant in (acme, other))
    template = create_role(None, key="auditor")
    invitation = create_invitation(acme.id, email="ada@acme.example")

    assert shown("roles", "show", "analyst", "--tenant", "acme") == str(role.id)
    assert shown("roles", "show", "auditor", "--tenant", "acme") == str(template.id)
    assert shown("roles", "show", template.id, "--tenant", "acme") == str(template.id)
    assert shown("invitations", "show", "ADA@acme.example") == str(invitation.id)


def test_granting_shows_the_end(app, run):
    create_preset("free", beta=False)
    create_tenant(slug="acme")
    end = "2999-01-01T00:00:00Z"

    granted = run("flags", "override", "acme", "beta", "true", "--expires-at", end, "--json")

    assert json.loads(granted.stdout)["expires_at"] == end


def test_the_row_of_a_history_by_its_kind(app, run):
    user = create_user(create_tenant(), email="ada@acme.example")
    run("users", "update", user.email, "--first-name", "Ada")

    (found,) = json.loads(run("audit", "history", "user", user.email, "--json").stdout)
    table = run("audit", "history", "user", user.id).stdout

    assert found["target_id"] == str(user.id)
    assert 'first_name: "" → "Ada"' in table


class TestSeveral:
    @pytest.fixture
    def ids(self, app):
        tenants = [create_tenant(slug=slug) for slug in ("acme", "initech")]
        return [create_member(one, email="ada@example.com")[0].id for one in tenants]

    def test_are_listed_with_their_ids(self, run, ids):
        ended = run("users", "show", "ada@example.com")

        assert (ended.exit_code, ended.stdout) == (1, "")
        assert "Several users are called ada@example.com: add --tenant SLUG" in ended.stderr
        assert all(str(one) in ended.stderr for one in ids)

    def test_are_told_apart_by_the_tenant(self, shown, ids):
        assert shown("users", "show", "ada@example.com", "--tenant", "initech") == str(ids[1])

    def test_of_one_tenant_are_not_narrowed_further(self, run, app):
        tenant = create_tenant(slug="acme")
        for _ in range(2):
            create_user(tenant, email="ada@example.com")

        ended = run("users", "show", "ada@example.com", "--tenant", "acme")

        assert "Several users are called ada@example.com in acme: give one of" in ended.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tenants", "show", "nobody"], "There is no tenant nobody; find it with flask search."),
        (
            ["users", "list", "--tenant", "nobody"],
            "There is no tenant nobody; find it with flask search.",
        ),
        (["users", "show", "a@b.co"], "There is no user a@b.co; find it with flask search."),
        (
            ["users", "show", "a@b.co", "--tenant", "acme"],
            "There is no user a@b.co in acme; find it with flask search.",
        ),
        (["memberships", "show", "a@b.co"], "There is no user a@b.co; find it with flask search."),
        (["plans", "show", "gold"], "There is no plan gold; find it with flask plans list."),
    ],
)
def test_a_row_that_is_missing_is_named(app, run, words, sentence):
    create_tenant(slug="acme")

    ended = run(*words)

    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, "", f"Error: {sentence}\n")


def test_an_id_of_another_tenant_is_not_found_with_a_tenant(app, run):
    create_tenant(slug="acme")
    _, foreign, _ = create_member(create_tenant())

    ended = run("memberships", "set-role", foreign.id, "admin", "--tenant", "acme")

    assert ended.stderr == f"Error: There is no membership {foreign.id} in acme.\n"
