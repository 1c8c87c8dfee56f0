"""An error names what its user has written: the option, the argument, or the body."""

import json
import re

import click
import pytest
from psycopg2.errors import UndefinedTable
from sqlalchemy.exc import ProgrammingError

from app.cli.base import NOT_MIGRATED, OperatorCommand
from app.operations import service
from app.surfaces.commands.refusals import FORMS
from app.surfaces.commands.resolver import Resolver
from app.surfaces.in_process import InProcess, operations
from tests.factories import (
    create_api_key,
    create_membership,
    create_preset,
    create_role,
    create_subscription,
    create_tenant,
    create_user,
)

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"


def test_refuses_an_argument_that_is_not_utf_8(app):
    ended = app.test_cli_runner().invoke(args=["tenants", "show", "a\udcff"])

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert r"Error: This is not UTF-8: 'a\udcff'" in ended.stderr


@pytest.mark.parametrize("words", [["export", "acme"], ["tenants", "export", "acme"]])
def test_names_a_file_that_cannot_be_written(app, tmp_path, words):
    create_tenant(slug="acme")
    path = tmp_path / "missing" / "file"

    ended = app.test_cli_runner().invoke(args=[*words, "--output", str(path)])

    assert ended.exit_code == 1
    assert f"Error: Could not open file '{path}': No such file or directory" in ended.stderr


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["access", "explain", "users:read", "--key", "x"], "--key"),
        (["api-keys", "create", "--yes", "--name", "", "--permission", "users:read"], "--name"),
        (["events", "list", "--types", "x"], "--types"),
        (["search", ""], "QUERY"),
        (["tenants", "plan", "set", "acme", "x", "--until", "null"], "PLAN_NAME"),
        (["usage", "reset", "acme", "seats"], "FEATURE"),
        (["tenants", "patch-meta-data", "acme", "[]"], "PATCHES"),
        (["webhook-endpoints", "create", "x", "--yes"], "URL"),
        (["webhook-endpoints", "create", "https://a.example", "--type", "x", "--yes"], "--type"),
        (["scim", "create", "--tenant", "acme", "--name", "n", "--group-role", "a=king"],
         "--group-role.a"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)  # fmt: skip
def test_names_what_was_written(app, words, place):
    create_tenant(slug="acme")

    ended = app.test_cli_runner().invoke(args=words)

    assert ended.exit_code == 2
    assert f"Error: {place}: " in ended.stderr


class TestJson:
    """With ``--json`` an error is JSON, too."""

    @pytest.mark.parametrize(
        ("words", "detail"),
        [
            (["show", "nobody"], "There is no tenant nobody; find it with"),
            (["show", ID], f"There is no tenant {ID}."),
            (["create", "--idp-org-id", "o", "--name", "n", "--slug", "taken"], "is taken"),
        ],
    )
    def test_of_a_refusal_is_the_body_of_the_answer(self, app, words, detail):
        create_tenant(slug="taken")

        ended = app.test_cli_runner().invoke(args=["tenants", *words, "--json"])

        assert (ended.exit_code, ended.stdout) == (1, "")
        assert detail in json.loads(ended.stderr)["detail"]

    def test_of_a_command_by_hand_has_the_sentence(self, app):
        ended = app.test_cli_runner().invoke(
            args=["platform-admins", "remove", "nobody", "--yes", "--json"]
        )

        assert (ended.exit_code, ended.stdout) == (1, "")
        assert json.loads(ended.stderr) == {
            "detail": "There is no platform superadmin nobody.",
            "code": "platform_admin_not_found",
        }

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["tenants", "delete", "acme", "--yes"], "tenant_active"),
            (["tenants", "show", "nobody"], "tenant_not_found"),
            (["tenants", "show", ID], "tenant_not_found"),
            (["plans", "show", "gold"], "plan_preset_not_found"),
            (["scim", "log", "Directory"], "scim_connection_not_found"),
        ],
        ids=" ".join,
    )
    def test_has_the_code_of_the_api(self, app, words, code):
        create_tenant(slug="acme")

        ended = app.test_cli_runner().invoke(args=[*words, "--json"])

        assert json.loads(ended.stderr)["code"] == code

    def test_of_missing_options_names_them(self, app):
        ended = app.test_cli_runner().invoke(args=["tenants", "create", "--json"])

        assert (ended.exit_code, ended.stdout) == (2, "")
        assert json.loads(ended.stderr) == {"detail": "Missing --idp-org-id, --name."}

    @pytest.mark.parametrize(
        ("words", "detail"),
        [
            (["users", "list", "--limit", "none"], "'none' is not a valid integer range."),
            (["users", "list", "--limt", "1"], "No such option '--limt'."),
            (["tokens", "issue"], "Give either --superadmin or --user."),
            (["doctor", "now"], "Got unexpected extra argument (now)"),
        ],
    )
    def test_of_wrong_arguments_has_the_sentence(self, app, words, detail):
        ended = app.test_cli_runner().invoke(args=[*words, "--json"])

        assert (ended.exit_code, ended.stdout) == (2, "")
        assert detail in json.loads(ended.stderr)["detail"]

    def test_of_invalid_values_lists_them(self, app):
        args = ["tenants", "create", "--idp-org-id", "", "--name", "", "--json"]

        ended = app.test_cli_runner().invoke(args=args)

        entries = json.loads(ended.stderr)["detail"]
        assert [entry["loc"] for entry in entries] == [["body", "idp_org_id"], ["body", "name"]]


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["scim", "create", "--name", "n"], "--tenant"),
        (["tenants", "plan", "set", "acme", "pro"], "--until"),
        (["users", "create", "--email", "a@b.co", "--idp-user-id", "a"], "--tenant"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)
def test_names_an_option_that_the_service_misses(app, words, missing):
    ended = app.test_cli_runner().invoke(args=words)

    assert (ended.exit_code, ended.stderr) == (2, f"Error: Missing {missing}.\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("access explain users:read", "Give exactly one of --subject, --user and --key."),
        ("role-assignments create --tenant acme --role clerk",
         "Give one of --membership, --group-id, --api-key-id."),
    ],
)  # fmt: skip
def test_names_the_options_of_which_one_is_needed(app, words, sentence):
    create_tenant(slug="acme")

    ended = app.test_cli_runner().invoke(args=words.split())

    assert (ended.exit_code, ended.stderr) == (2, f"Error: {sentence}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tenants", "create", "--idp-org-id", "o", "--name", "n", "--slug", "Acme"],
         "--slug: Acme is not of the allowed form: lower-case letters and digits, with single hyphens"),
        (["access", "explain", "users:read", "--key", "x"], "--key: x is not an id"),
        (["rewinds", "create", "acme", "1m", "--only", "x"], "--only: x is not an id"),
        (["log-streams", "create", "--tenant", "acme", "--kind", "https", "--config", '{"ur": 1}'],
         "--config.ur: there is no such field"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)  # fmt: skip
def test_says_in_words_what_is_wrong(app, words, sentence):
    create_tenant(slug="acme")

    ended = app.test_cli_runner().invoke(args=words)

    assert ended.exit_code == 2
    assert sentence in ended.stderr


def test_has_words_for_the_form_of_each_name(app):
    forms = {
        one.schema["pattern"]
        for operation in operations(app)
        for one in operation.arguments
        if one.place == "body" and "pattern" in one.schema
    }

    assert forms - {*FORMS} == set()


def test_refuses_a_target_that_is_no_id(app):
    run = app.test_cli_runner().invoke
    url = "https://hooks.example.com/"

    ended = run(args=["audit", "history", "webhook_endpoint", url])
    of_a_limit = run(args=["audit", "history", "limit", "seats"])

    assert ended.stderr == f"Error: Give the id of the webhook_endpoint, not {url}.\n"
    assert (ended.exit_code, of_a_limit.exit_code) == (2, 0)


def test_asks_for_the_tenant_of_an_override(app):
    args = ["flags", "update-override", "beta", "true"]

    ended = app.test_cli_runner().invoke(args=args)

    assert ended.stderr == "Error: Say whose override of beta: add --tenant SLUG.\n"


def test_names_the_missing_row_of_a_body(app):
    tenant = create_tenant()
    membership = create_membership(tenant, create_user(tenant))
    create_role(tenant, key="clerks")

    ended = app.test_cli_runner().invoke(
        prog_name="flask",
        args=["role-assignments", "create", "--tenant", str(tenant.id), "--role", "clerk",
              "--membership", str(membership.id)]
    )  # fmt: skip

    told = "There is no role clerk; find it with flask roles list. Did you mean clerks?"
    assert (ended.exit_code, ended.stderr) == (1, f"Error: {told}\n")


def test_names_the_missing_resource_of_a_body(app):
    tenant = create_tenant()
    membership = create_membership(tenant, create_user(tenant))
    create_role(tenant, key="clerk")

    ended = app.test_cli_runner().invoke(
        args=["role-assignments", "create", "--tenant", str(tenant.id), "--role", "clerk",
              "--membership", str(membership.id), "--resource", '{"type": "doc", "id": "1"}']
    )  # fmt: skip

    assert (ended.exit_code, ended.stderr) == (1, "Error: There is no resource doc/1.\n")


def test_a_wrong_plan_or_role_is_refused_with_the_command_that_lists_them(app):
    create_role(create_tenant(slug="acme"), key="clerk")
    create_preset("growth", beta=False)
    role = [
        "roles",
        "create",
        "--tenant",
        "acme",
        "--key",
        "a",
        "--name",
        "A",
        "--permission",
        "users:read",
    ]
    for words, listed in (
        (
            ["tenants", "plan", "set", "acme", "growht", "--until", "14d"],
            "growht; find it with flask plans list. Did you mean growth?",
        ),
        (
            [*role, "--inherits", "clrek"],
            "clrek; find it with flask roles list. Did you mean clerk?",
        ),
        (
            [*role[:-1], "users:reed"],
            "users:reed; find it with flask permissions list. Did you mean users:read?",
        ),
    ):
        ended = app.test_cli_runner().invoke(args=words, prog_name="flask")

        assert (ended.exit_code, ended.stderr.endswith(f"{listed}\n")) == (2, True), ended.stderr


@pytest.mark.parametrize("verb", ["show", "log"])
def test_names_the_command_that_lists_ids(app, verb):
    ended = app.test_cli_runner().invoke(args=["scim", verb, "Entra"], prog_name="flask")

    sentence = "There is no SCIM connection Entra; give its id (flask scim list)."
    assert ended.stderr == f"Error: {sentence}\n"


def test_a_wrong_choice_is_refused_with_the_near_ones_first(app):
    ended = app.test_cli_runner().invoke(args=["audit", "list", "--action", "tenant.create"])

    told = ended.stderr.partition("is not one of ")[2]
    assert (ended.exit_code, told.count(", ")) == (2, 10)
    assert told.startswith("tenant.created, ")
    assert told.endswith(", … (--help lists all). Did you mean tenant.created?\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("log-streams create --config {", "'{' is not JSON: Expecting property name"),
        ("log-streams create --config x", """'x' is not JSON, such as '{"name": "text"}'.\n"""),
        ("flags override acme beta yes", "'yes' is not JSON, such as true, 10 or"),
    ],
)
def test_says_what_is_wrong_with_json(app, words, told):
    ended = app.test_cli_runner().invoke(args=words.split())

    assert ended.exit_code == 2
    assert told in ended.stderr


class TestNames:
    """A name of no row is answered with the nearest name that the credential may see."""

    @pytest.mark.parametrize(
        ("words", "near"),
        [
            ("tenants show acmee", "acme"),
            ("tenants show robotics", "acme"),
            ("users show adda@acme.example", "ada@acme.example"),
            ("plans show growt", "growth"),
            ("roles list --tenant acmee", "acme"),
        ],
    )
    def test_that_is_near_is_suggested(self, app, words, near):
        create_user(create_tenant(slug="acme", name="Robotics"), email="ada@acme.example")
        create_preset("growth", beta=False)

        ended = app.test_cli_runner().invoke(args=words.split())

        assert ended.exit_code == 1
        assert ended.stderr.endswith(f" Did you mean {near}?\n")

    def test_that_is_far_is_not(self, app):
        create_tenant(slug="acme")

        ended = app.test_cli_runner().invoke(args=["tenants", "show", "globex"])

        assert "Did you mean" not in ended.stderr

    def test_of_another_tenant_is_not(self, app):
        own = create_tenant(slug="globex")
        create_user(create_tenant(slug="acme"), email="ada@acme.example")
        key = create_api_key(own, permissions=["users:read", "tenants:read"])

        def send(request):
            headers = {**request.headers, "Authorization": f"Bearer {key}"}
            return InProcess(app.wsgi_app)(request._replace(headers=headers))

        assert Resolver(send).nearest("tenant", "acmee") == ""
        assert Resolver(send).nearest("user", "adda@acme.example") == ""


def test_tells_what_a_change_did_not_do(app):
    row = create_subscription(create_tenant())
    run = app.test_cli_runner().invoke
    words = ["subscriptions", "update", str(row.id), "--plan-name"]

    first = run(args=[*words, "a", "--source-timestamp", "2026-02-01"])
    late = run(args=[*words, "b", "--source-timestamp", "2026-01-01"])

    assert first.stderr == "No preset is named a, so this plan has no effect yet.\n"
    assert "Ignored: a newer update has been applied.\n" in late.stderr


def test_a_moment_may_have_a_sign(app):
    create_tenant(slug="acme")

    ended = app.test_cli_runner().invoke(args=["history", "show", "acme", "-1d"])

    assert ended.exit_code == 1
    assert ended.stderr.startswith("Error: There was no tenant acme then; it was created at ")


def test_says_that_a_row_was_missing_then_and_when_it_was_created(app):
    create_user(create_tenant(slug="acme"), email="ada@acme.example")
    run = app.test_cli_runner().invoke
    at = r"then; it was created at 20[0-9T:.-]+Z \(just now\)\.\n"

    for words in (
        "history show acme 1d",
        "history diff acme 1d",
        "users list --tenant acme --as-of 1m",
    ):
        ended = run(args=words.split())
        assert re.fullmatch(f"Error: There was no tenant acme {at}", ended.stderr), ended.stderr
    shown = run(args=["users", "show", "ada@acme.example", "--as-of", "30s"])
    assert re.fullmatch(f"Error: There was no user ada@acme.example {at}", shown.stderr)


def test_a_database_without_migrations_is_told_in_one_sentence(app, monkeypatch):
    monkeypatch.setattr(service, "newest_migration", lambda: "9999")

    ended = app.test_cli_runner().invoke(args=["tenants", "list"])

    assert (ended.exit_code, ended.stderr) == (1, f"Error: {NOT_MIGRATED}\n")


@pytest.mark.parametrize(
    "fault", [UndefinedTable(), ProgrammingError(None, None, UndefinedTable())], ids=repr
)
def test_a_command_by_hand_says_it_too(fault):
    told = OperatorCommand("x").refusal(click.Context(click.Command("x")), fault)

    assert told.message == NOT_MIGRATED
