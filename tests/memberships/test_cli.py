"""``flask memberships``."""

import json

from tests.factories import create_member, create_tenant, create_user


def run(app, *words):
    return app.test_cli_runner().invoke(args=["memberships", *words])


def answer(app, *words):
    result = run(app, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class TestMemberships:
    def test_creates_changes_ends_and_lists(self, app):
        tenant = create_tenant(slug="acme")
        user = create_user(tenant)
        create_member(create_tenant())

        created = answer(
            app, "create", "--tenant", "acme", "--user", user.email, "--role", "viewer"
        )
        promoted = answer(app, "set-role", created["id"], "owner")
        member, membership, _ = create_member(tenant, role="owner")
        ended = answer(app, "deactivate", created["id"])
        inactive = answer(app, "list", "--inactive")
        back = answer(app, "activate", created["id"])
        shown = answer(app, "show", created["id"])

        assert (created["role"], promoted["role"]) == ("viewer", "owner")
        assert (ended["is_active"], back["is_active"]) == (False, True)
        assert inactive == [{**ended, "email": user.email}]
        assert answer(app, "list", "--tenant", "acme", "--user", user.email) == [
            {**shown, "email": user.email}
        ]
        assert [row["id"] for row in answer(app, "list", "--user", str(member.id))] == [
            str(membership.id)
        ]

    def test_names_a_membership_by_its_members_address(self, app):
        email = "ada@example.com"
        ids = {}
        for slug in ("acme", "initech"):
            tenant = create_tenant(slug=slug)
            user = create_user(tenant, email=email)
            ids[slug] = answer(
                app, "create", "--tenant", slug, "--user", str(user.id), "--role", "viewer"
            )["id"]

        changed = answer(app, "set-role", email, "admin", "--tenant", "acme")
        ambiguous = run(app, "set-role", email, "admin")
        unknown = run(app, "show", "bob@example.com")
        foreign = run(app, "set-role", ids["initech"], "admin", "--tenant", "acme")
        create_user(tenant, email="eve@example.com")
        without = run(app, "show", "eve@example.com")

        assert (changed["id"], changed["role"]) == (ids["acme"], "admin")
        assert answer(app, "show", ids["initech"])["role"] == "viewer"
        assert "add --tenant SLUG" in ambiguous.stderr
        assert foreign.stderr == f"Error: There is no membership {ids['initech']}.\n"
        assert unknown.stderr == "Error: There is no user bob@example.com.\n"
        assert without.stderr == "Error: There is no membership eve@example.com.\n"
