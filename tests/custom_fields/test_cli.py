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


class TestDefinitions:
    def test_defines_changes_archives_and_restores(self, run, tenant):
        created = run(
            *("create", "--tenant", "acme", "--field-key", "team", "--label", "Team"),
            *("--field-type", "select", "--option", "a", "--option", "b", "--searchable", "--json"),
        )
        field_id = json.loads(created.stdout)["id"]
        updated = run("update", field_id, "--label", "Group", "--required", "--json")
        archived = run("archive", field_id, "--json")
        restored = run("restore", field_id, "--json")
        shown = run("show", field_id, "--json")

        assert json.loads(created.stdout)["options"] == ["a", "b"]
        assert json.loads(updated.stdout)["label"] == "Group"
        assert json.loads(archived.stdout)["is_active"] is False
        assert json.loads(restored.stdout)["is_active"] is True
        assert json.loads(shown.stdout)["version"] == 4

    def test_lists_the_fields_of_a_tenant_with_the_state_of_their_indexes(self, run, field):
        create_field(create_tenant())

        listed = json.loads(run("list", "--tenant", "acme", "--json").stdout)
        table = run("list", "--tenant", "acme").stdout

        assert [(row["field_key"], row["index"]) for row in listed] == [("team", "ready")]
        assert "team" in table
        assert "ready" in table

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("show", "nothing"), "There is no field nothing."),
            (("list", "--tenant", "nobody"), "There is no tenant nobody."),
            (
                ("archive", "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"),
                "There is no field 01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f.",
            ),
            (("reindex", "--field", "nothing"), "There is no field nothing."),
        ],
    )
    def test_refuses_in_one_sentence(self, run, tenant, words, sentence):
        result = run(*words)

        assert result.exit_code == 1
        assert sentence in result.stderr
        assert result.stdout == ""


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
