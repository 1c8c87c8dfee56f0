"""``flask search``."""

import json

import pytest

from tests import factories
from tests.search.finding import create_tenant, create_user, terms_of


@pytest.fixture
def run(app):
    def invoke(*words):
        return app.test_cli_runner().invoke(args=["search", *words])

    return invoke


@pytest.fixture
def ada(app):
    return create_user(create_tenant(slug="acme", name="Acme"), first_name="Ada", last_name="Byron")


class TestFind:
    def test_prints_a_table(self, run, ada):
        result = run("ada", "by")

        assert result.exit_code == 0, result.output
        assert all(word in result.stdout for word in ("user", "Ada Byron", "acme", str(ada.id)))

    def test_narrows_to_types_and_a_tenant(self, run, ada):
        create_tenant(slug="other", name="Adamant")

        assert len(json.loads(run("ada", "--json").stdout)) == 2
        assert len(json.loads(run("--types", "tenant", "ada", "--json").stdout)) == 1
        (found,) = json.loads(run("for", "ada", "--tenant", "acme", "--json").stdout)
        assert found["id"] == str(ada.id)

    @pytest.mark.parametrize("words", [["a"], ["ada", "--types", "people"], ["?!"]])
    def test_refuses_what_it_cannot_search(self, run, ada, words):
        assert run(*words).exit_code != 0


class TestBuild:
    def test_builds_the_terms_of_all_rows(self, run, app):
        user = factories.create_user(factories.create_tenant(), first_name="Old")

        result = run("build", "--json")

        assert json.loads(result.stdout) == [
            {"type": "tenant", "rows": 1},
            {"type": "user", "rows": 1},
            {"type": "subscription", "rows": 0},
            {"type": "email_message", "rows": 0},
        ]
        assert "old" in terms_of(user)
