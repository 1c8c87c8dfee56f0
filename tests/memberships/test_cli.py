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
        assert inactive == [ended]
        assert answer(app, "list", "--tenant", "acme", "--user", user.email) == [shown]
        assert [row["id"] for row in answer(app, "list", "--user", str(member.id))] == [
            str(membership.id)
        ]

    def test_keeps_the_last_owner(self, app):
        _, membership, _ = create_member(create_tenant(), role="owner")

        for words in (
            ["set-role", str(membership.id), "admin"],
            ["deactivate", str(membership.id)],
        ):
            result = run(app, *words)
            assert (result.exit_code, result.stdout) == (1, "")
            assert "at least one active owner" in result.stderr

    def test_prints_a_table_for_people(self, app):
        _, membership, _ = create_member(create_tenant(), role="billing")

        result = run(app, "list", "--role", "billing")

        assert str(membership.id) in result.stdout

    def test_knows_the_roles(self, app):
        result = run(app, "set-role", "x", "root")

        assert result.exit_code == 2
        assert "'root' is not one of" in result.stderr
