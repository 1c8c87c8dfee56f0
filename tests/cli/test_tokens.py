"""`flask tokens issue`: for whom, for how long, and what is refused."""

import json

import pytest

from tests.factories import create_tenant, create_user, platform_token


def invoke(app, *words: str):
    return app.test_cli_runner().invoke(args=[*words])


class TestTokensIssue:
    def test_prints_the_bare_token_of_a_user_by_email_or_id(self, app, api):
        user = create_user(create_tenant(), email="ada@example.com")

        by_email = invoke(app, "tokens", "issue", "--user", "ada@example.com").stdout
        by_id = invoke(app, "tokens", "issue", "--user", str(user.id)).stdout

        verify = app.extensions["token_verifier"].verify
        assert verify(by_email.strip()) == verify(by_id.strip())
        assert verify(by_id.strip()).subject == user.idp_user_id

    def test_prints_a_superadmins_token_with_a_home(self, app):
        platform_token()
        tenant = create_tenant(slug="home")

        printed = invoke(app, "tokens", "issue", "--superadmin", "--tenant", "home", "--json")

        answer = json.loads(printed.stdout)
        claims = app.extensions["token_verifier"].verify(answer["token"])
        assert claims.org_id == tenant.idp_org_id == answer["org_id"]

    def test_prints_that_of_somebody_who_is_no_user_yet(self, app):
        printed = invoke(app, "tokens", "issue", "--email", "grace@example.com")
        mixed = invoke(app, "tokens", "issue", "--email", "grace@example.com", "--superadmin")

        claims = app.extensions["token_verifier"].verify(printed.stdout.strip())
        assert (claims.org_id, claims.email) == (None, "grace@example.com")
        assert "Give --email alone." in mixed.stderr

    def test_refuses_a_life_that_is_over(self, app):
        platform_token()

        printed = invoke(app, "tokens", "issue", "--superadmin", "--ttl", "-3600")

        assert printed.exit_code != 0

    def test_asks_which_of_two_users_of_one_address(self, app):
        for slug in ("one", "two"):
            create_user(create_tenant(slug=slug), email="ada@example.com")

        ambiguous = invoke(app, "tokens", "issue", "--user", "ada@example.com")
        named = invoke(app, "tokens", "issue", "--user", "ada@example.com", "--tenant", "two")

        assert ambiguous.exit_code == 1
        assert "add --tenant" in ambiguous.stderr
        assert named.exit_code == 0

    def test_asks_which_of_several_superadmins(self, app):
        for subject in ("zed", "ada"):
            invoke(app, "platform-admins", "add", subject)

        ambiguous = invoke(app, "tokens", "issue", "--superadmin")
        named = invoke(app, "tokens", "issue", "--superadmin", "--subject", "zed", "--json")

        assert ambiguous.stderr == "Error: Give --subject: one of ada, zed.\n"
        assert json.loads(named.stdout)["subject"] == "zed"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--superadmin", "--subject", "x"], "There is no platform superadmin x."),
            (["--user", "x", "--subject", "x"], "Give --subject with --superadmin."),
            (["--user", "nobody@example.com"], "There is no user nobody@example.com; find it with"),
            (["--superadmin"], "There is no platform superadmin"),
            (["--user", "x", "--tenant", "none"], "There is no tenant none; find it with"),
            ([], "Give either --superadmin or --user."),
        ],
    )
    def test_says_what_is_missing(self, app, words, said):
        refused = invoke(app, "tokens", "issue", *words)

        assert refused.exit_code != 0
        assert said in refused.stderr
