"""``flask custom-fields``."""

import json

import pytest

from tests.custom_fields.fields import build_index, create_field, index_rows
from tests.database import execute
from tests.factories import create_tenant, create_user


@pytest.fixture
def run(app):
    def invoke(*words):
        return app.test_cli_runner().invoke(args=["custom-fields", *map(str, words)])

    return invoke


@pytest.fixture
def tenant(app):
    return create_tenant(slug="acme")


@pytest.fixture
def field(app, tenant):
    for number in range(3):
        create_user(tenant, meta_data={"team": f"v{number}"})
    field = create_field(tenant, field_key="team", is_searchable=True)
    build_index(app, field)
    return field


def spoil(field):
    execute(
        "DELETE FROM custom_field_index_rows WHERE field_id = :id AND text_key = 'v1'", id=field.id
    )


class TestReindex:
    def test_builds_anew_here_and_now(self, run, field):
        spoil(field)

        result = run("reindex", "--tenant", "acme", "--json")

        (row,) = json.loads(result.stdout)
        assert result.exit_code == 0
        assert (row["field_key"], row["state"], row["entities"]) == ("team", "ready", 3)
        assert len(index_rows(field)) == 3

    def test_leaves_fields_alone_that_are_not_searched(self, run, tenant):
        plain = create_field(tenant)

        result = run("reindex", "--field", plain.id, "--json")

        assert json.loads(result.stdout) == []

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("--tenant", "nobody"), "There is no tenant nobody."),
            (("--field", "nothing"), "There is no field nothing; give its id "),
        ],
    )
    def test_refuses_in_one_sentence(self, run, words, sentence):
        result = run("reindex", *words)

        assert (result.exit_code, result.stdout) == (1, "")
        assert sentence in result.stderr
