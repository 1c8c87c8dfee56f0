"""``flask users``."""

import json

import pytest

from app.core.actors import SYSTEM_CLI
from tests.factories import create_member, create_tenant, create_user


def run(app, *words):
    return app.test_cli_runner().invoke(args=["users", *words])


def answer(app, *words):
    result = run(app, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def tenant(app):
    return create_tenant(slug="acme")


class TestUsers:
    def test_creates_shows_changes_and_lists(self, app, tenant):
        create_user(create_tenant())
        created = answer(
            app, "create", "--tenant", "acme", "--idp-user-id", "u", "--email", "a@b.co",
            "--meta-data", '{"a": 1}',
        )  # fmt: skip
        changed = answer(app, "update", "a@b.co", "--set", "first_name=Ada")
        patch = f'{{"a": null, "b": [2.0, {10**30}]}}'
        patched = answer(app, "patch-meta-data", "a@b.co", patch)
        shown = answer(app, "show", created["id"])
        listed = answer(app, "list", "--tenant", "acme")

        assert (created["meta_data"], created["created_by_user_id"]) == ({"a": 1}, SYSTEM_CLI.id)
        assert changed["first_name"] == "Ada"
        assert patched["meta_data"] == {"b": [2.0, 10**30]}
        assert listed == [shown] == [patched]

    def test_deactivates_and_activates(self, app, api, tenant):
        user, _, token = create_member(tenant, role="viewer")

        answer(app, "deactivate", user.email)
        inactive = answer(app, "list", "--inactive")
        refused = api.get("/v1/users", token=token).status_code
        answer(app, "activate", str(user.id))
        allowed = api.get("/v1/users", token=token).status_code

        assert [row["id"] for row in inactive] == [str(user.id)]
        assert (refused, allowed) == (403, 200)

    def test_asks_which_of_several_is_meant(self, app, tenant):
        for of in (tenant, create_tenant()):
            create_user(of, email="a@b.co")

        ambiguous = run(app, "show", "a@b.co")
        named = answer(app, "show", "a@b.co", "--tenant", "acme")

        assert "Several users are called a@b.co" in ambiguous.stderr
        assert named["tenant_id"] == str(tenant.id)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["show", "nobody"], "There is no user nobody."),
            (["list", "--tenant", "nowhere"], "There is no tenant nowhere."),
            (["patch-meta-data", "x", "{"], "This is not JSON"),
            (["patch-meta-data", "x", "[1]"], "valid dictionary"),
        ],
    )
    def test_says_in_a_sentence_what_is_wrong_and_fails(self, app, words, said):
        result = run(app, *words)

        assert result.exit_code != 0
        assert said in result.stderr
