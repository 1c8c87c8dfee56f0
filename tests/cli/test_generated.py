"""The generated commands: each operation has one, and each option reaches the request."""

import json
from typing import Any
from urllib.parse import quote

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from flask.cli import ScriptInfo

from app.auth.models import ApiKey
from app.cli import generated as flask_groups
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.surfaces.commands.command import GeneratedCommand
from app.surfaces.commands.names import COMMANDS, GROUPS, spellings
from app.surfaces.commands.parameters import destination, label_of
from app.surfaces.in_process import operations
from app.surfaces.operations import Answer, Argument, Request
from tests.cli.test_help import commands
from tests.database import execute, query, row
from tests.factories import (
    create_api_key,
    create_log_stream,
    create_member,
    create_preset,
    create_tenant,
    create_user,
)

ID = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"
MOMENT = "2030-01-31T12:00:00Z"


@pytest.fixture
def generated(app) -> dict[str, GeneratedCommand]:
    """The generated commands by their words."""
    return {words: one for words, one in commands(app).items() if isinstance(one, GeneratedCommand)}


@pytest.fixture
def sent(monkeypatch) -> list[Request]:
    """The requests that commands send; each is answered with success, and nothing happens."""
    requests: list[Request] = []

    def send(request: Request) -> Answer:
        requests.append(request)
        row = {"id": ID, "slug": "acme", "to_position": "7", "tenant": {"id": ID, "slug": "acme"}}
        row |= {"allowed": True, "done": 0, "is_complete": True, "counts": {}}
        is_list = request.method == "GET" and not request.path.endswith((ID, "/explain"))
        return Answer(200, {}, {"data": [] if is_list else row, "next_cursor": None})

    monkeypatch.setattr(flask_groups, "in_process", lambda app: send)
    return requests


def sample_of(argument: Argument) -> tuple[str, Any]:
    """What can be written for the argument, and what is sent for it."""
    return _sample(argument.schema, is_time=argument.name.endswith("Timestamp"))


def _sample(schema: dict[str, Any], *, is_time: bool = False) -> tuple[str, Any]:
    if "enum" in schema:
        return schema["enum"][0], schema["enum"][0]
    match schema.get("type"):
        case "string" if schema.get("format") == "date-time" or is_time:
            return MOMENT, MOMENT
        case "string":
            return ID, ID
        case "integer" | "number":
            return str(schema.get("minimum", 3)), schema.get("minimum", 3)
        case "array":
            text, value = _sample(schema["items"])
            return text, [value]
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            others = schema["additionalProperties"].get("enum", ["b"])
            return f"a={others[0]}", {"a": others[0]}
        case _:
            return '{"a": [1]}', {"a": [1]}


def words_of(command: GeneratedCommand) -> tuple[list[str], dict[str, tuple[str, Any]]]:
    """Arguments with every option, and the place and value that each has in the request."""
    by_name = {one.name: one for one in command.offered.values()}
    expected: dict[str, tuple[str, Any]] = {}
    options, positional = [], []
    for name, one in by_name.items():
        text, value = sample_of(one)
        if name in command.spelling.positional:
            positional.append((command.spelling.positional.index(name), text))
        elif one.schema.get("type") == "boolean":
            options.append(label_of(one, is_positional=False))
            value = True
        else:
            options += [label_of(one, is_positional=False), text]
        expected[name] = (one.place, value)
    for name, value in command.spelling.fixed.items():
        place = next(one.place for one in command.operation.arguments if one.name == name)
        expected[name] = (place, value)
    options += ["--yes"] if command.may_destroy else []
    return [*options, "--", *(text for _, text in sorted(positional))], expected


def found_in(request: Request, place: str, name: str, value: Any) -> bool:
    match place:
        case "path":
            return quote(str(value), safe="") in request.path
        case "body":
            return request.body[name] == value
        case "header":
            return request.headers[name] == value
    if isinstance(value, dict):
        return all(request.query[f"{name}[{key}]"] == part for key, part in value.items())
    if isinstance(value, list):
        return request.query[name] == ",".join(value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return request.query[name] == text


class TestCommands:
    def test_every_guarded_operation_has_one(self, app, generated):
        # `flask tenants delete` has --now, too, and `flask scim test` fails if a step does.
        by_hand = {"tenants_request_deletion", "scim_connection_tests_test"}
        streams = {"access_streams_get", "event_streams_get", "flag_streams_get"}
        # Those of AuthZEN are for programs; `flask access explain` says more.
        authzen = {one.name for one in operations(app) if "/access/v1/" in one.path}

        named = {one.operation.name for one in generated.values()} | by_hand

        assert named | streams | authzen == {one.name for one in operations(app) if one.permission}

    def test_names_are_of_operations_and_groups_that_exist(self, app, generated):
        assert COMMANDS.keys() <= {one.name for one in operations(app)}
        groups = {words.rpartition(" ")[0] for words in generated}
        above = {group.rpartition(" ")[0] for group in groups} - {""}
        assert groups | above == set(GROUPS)

    def test_have_no_option_twice(self, generated):
        for words, command in generated.items():
            spellings = [one for param in command.params for one in param.opts]
            assert len(spellings) == len(set(spellings)), words
            assert len(command.offered) == len(set(map(destination, command.offered.values())))

    def test_each_option_reaches_the_request(self, app, generated, sent, tmp_path):
        path = tmp_path / "body"
        path.write_text("{}\n")
        for words, command in generated.items():
            given, expected = words_of(command)
            if command.operation.media_type == "application/x-ndjson":
                given = ["--body", str(path), *given]
            sent.clear()

            ended = app.test_cli_runner().invoke(args=[*words.split(), *given])

            assert ended.exit_code == 0, f"{words} {given}: {ended.output}"
            request = sent[-1]
            assert request.method == command.operation.method.upper()
            for name, (place, value) in expected.items():
                assert found_in(request, place, name, value), f"{words}: {name} in {request}"

    def test_send_nothing_that_was_not_given(self, app, sent):
        app.test_cli_runner().invoke(args=["users", "update", ID, "--first-name", "Ada"])
        app.test_cli_runner().invoke(args=["tenants", "plan", "set", ID, "pro", "--until", "null"])
        app.test_cli_runner().invoke(args=["audit", "list"])

        assert [one.body for one in sent] == [
            {"first_name": "Ada"},
            {"plan_name": "pro", "until": None},
            None,
        ]
        assert sent[-1].query == {
            "order": "-created_at",
            "include": "tenant,actor_name,target_name",
        }

    def test_take_null_where_the_operation_does(self, app, sent):
        app.test_cli_runner().invoke(
            args=["webhook-endpoints", "update", ID, "--rate-limit", "null"]
        )
        app.test_cli_runner().invoke(
            args=["flags", "update-override", ID, "null", "--expires-at", "null"]
        )

        assert [one.body for one in sent] == [
            {"rate_limit": None},
            {"flag_value": None, "expires_at": None},
        ]


class TestBody:
    def test_is_read_from_a_file_and_options_take_precedence(self, app, sent, tmp_path):
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"name": "a", "flags": []}))

        app.test_cli_runner().invoke(args=["plans", "create", "--body", str(path)])
        app.test_cli_runner().invoke(args=["plans", "create", "--body", str(path), "--name", "b"])

        assert [one.body["name"] for one in sent] == ["a", "b"]

    def test_of_another_type_is_sent_as_it_is(self, app):
        line = '{"type": "tenant", "idp_org_id": "org_new", "name": "New"}\n'
        run = app.test_cli_runner().invoke

        created = run(args=["imports", "create", "--body", "-", "--json"], input=line)

        listed = json.loads(run(args=["imports", "list", "--json"]).stdout)
        assert [one["id"] for one in listed] == [json.loads(created.stdout)["id"]]

    @pytest.mark.parametrize("text", ["{", "[" * 100_000])
    def test_that_is_not_json_is_refused(self, app, sent, text):
        ended = app.test_cli_runner().invoke(args=["plans", "create", "--body", "-"], input=text)

        assert (ended.exit_code, sent) == (2, [])
        assert "Invalid value for '--body': This is not JSON" in ended.stderr

    def test_that_is_no_object_is_refused_by_the_api(self, app):
        ended = app.test_cli_runner().invoke(args=["plans", "create", "--body", "-"], input="[]")

        assert ended.exit_code == 2
        assert ended.stderr.startswith("Error: --body: ")


class TestConfirmation:
    @pytest.fixture
    def delete(self, app, sent):
        """`controlplane tenants delete`; `flask` has one by hand."""
        known = operations(app)
        operation = next(one for one in known if one.name == "tenants_request_deletion")
        (spelling,) = spellings(operation)
        return GeneratedCommand(operation, spelling, known, lambda _: flask_groups.in_process(app))

    def test_is_the_answer_to_the_question(self, delete, sent):
        ended = CliRunner().invoke(delete, [ID], input="y\n")

        assert ended.output.startswith("Delete a suspended tenant")
        assert ": acme? [y/N]: y" in ended.output
        assert sent[-1].body == {"slug": "acme"}

    def test_needs_no_question_with_yes(self, delete, sent):
        ended = CliRunner().invoke(delete, [ID, "--yes", "--json"])

        assert ended.exit_code == 0
        assert (sent[-1].method, sent[-1].body) == ("DELETE", {"slug": "acme"})


class TestInProcess:
    def test_has_the_operators_rights_and_name(self, app, api):
        create_api_key(create_tenant(), name="n")
        key = row(ApiKey)
        run = app.test_cli_runner().invoke

        created = run(args=["api-keys", "create", "--name", "ops", "--permission",
                            "platform:superadmin", "--expires-at", "7d", "--json", "--yes"])  # fmt: skip
        secret = json.loads(created.stdout)["secret"]
        works = api.get("/v1/tenants", token=secret).status_code
        revoked = run(args=["api-keys", "revoke", str(key.id), "--yes", "--json"])
        listed = json.loads(run(args=["api-keys", "list", "--no-active", "--json"]).stdout)

        assert works == 200
        assert json.loads(revoked.stdout) == {"key_id": str(key.id)}
        assert [one["id"] for one in listed] == [str(key.id)]
        assert query("SELECT DISTINCT actor FROM audit_events") == [(SYSTEM_CLI.id,)]

    def test_gives_no_client_these_rights(self, app):
        for name in ("controlplane.operator", "Controlplane-Operator"):
            answer = app.test_client().get("/v1/tenants", headers={name: SYSTEM_CLI.id})
            assert answer.status_code == 401

    def test_prints_what_the_api_answers(self, app, api):
        user, _, token = create_member(create_tenant(), role="owner")

        shown = app.test_cli_runner().invoke(args=["users", "show", str(user.id), "--json"])

        answer = api.get(f"/v1/users/{user.id}", token=token).get_json()
        assert json.loads(shown.stdout) == answer["data"]

    def test_prints_another_media_type_as_it_is(self, app):
        create_tenant()

        printed = app.test_cli_runner().invoke(args=["audit", "csv"])

        assert printed.stdout.startswith('"id","created_at"')

    def test_prints_an_export_as_json(self, app):
        user = create_user(create_tenant())

        printed = app.test_cli_runner().invoke(args=["privacy", "export", user.email])

        assert json.loads(printed.stdout)["tables"]["users"][0]["id"] == str(user.id)

    def test_reports_a_success_without_a_body(self, app):
        create_api_key(create_tenant())
        key = row(ApiKey)

        ended = app.test_cli_runner().invoke(args=["api-keys", "revoke", str(key.id), "--yes"])

        assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "Done.\n")


class TestCompletion:
    def complete(self, app, words, incomplete):
        completion = ShellComplete(
            app.cli, {"obj": ScriptInfo(create_app=lambda: app)}, "flask", "_FLASK_COMPLETE"
        )
        return [one.value for one in completion.get_completions(words, incomplete)]

    @pytest.mark.parametrize(
        ("words", "incomplete", "found"),
        [
            ([], "tena", ["tenants"]),
            (["tenants"], "plan", ["plan"]),
            (["memberships", "list", "--role"], "a", ["admin"]),
            (["memberships", "set-role", ID], "o", ["owner"]),
            (["users", "list"], "--idp", ["--idp-user-id"]),
        ],
    )
    def test_knows_groups_commands_options_and_choices(self, app, words, incomplete, found):
        assert self.complete(app, words, incomplete) == found


@pytest.mark.parametrize(
    ("words", "suggested"),
    [(["tenant", "list"], "tenants"), (["tenants", "lst"], "list"), (["users", "shwo"], "show")],
)
def test_a_word_that_is_not_known_is_answered_with_a_suggestion(app, words, suggested):
    ended = app.test_cli_runner().invoke(args=words)

    assert ended.exit_code == 2
    assert f"Did you mean '{suggested}'?" in ended.stderr


def test_a_command_by_hand_replaces_a_generated_one(app):
    assert not isinstance(commands(app)["tenants delete"], GeneratedCommand)
    assert isinstance(commands(app)["tenants list"], click.Command)


class TestExitCode:
    """It is 1 where the answer is no."""

    @pytest.mark.parametrize(("role", "code"), [("owner", 0), ("viewer", 1)])
    def test_of_an_explanation(self, app, tenant, role, code):
        user, *_ = create_member(tenant, role)
        words = ["access", "explain", "users:write", "--user", user.email, "--json"]

        ended = app.test_cli_runner().invoke(args=words)

        assert (ended.exit_code, json.loads(ended.stdout)["allowed"]) == (code, not code)


def test_work_that_goes_on_is_followed_by_the_command_that_shows_its_result(app, tenant):
    stream = create_log_stream(tenant.id).id

    ended = app.test_cli_runner().invoke(
        args=["log-streams", "test", str(stream)], prog_name="flask"
    )

    told = f"Under way. This shows the result: flask log-streams show {stream}\n"
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", told)


@pytest.mark.parametrize(("error", "told"), [(None, "passed."), ("no answer", "failed: no answer")])
def test_the_result_of_a_test_is_a_line(app, tenant, error, told):
    stream = create_log_stream(tenant.id)
    values = {"stream_id": stream.id, "tested_at": utcnow(), "error": error}
    execute(
        "UPDATE log_stream_progress SET tested_at = :tested_at, test_error = :error"
        " WHERE stream_id = :stream_id",
        **values,
    )

    ended = app.test_cli_runner().invoke(args=["log-streams", "show", str(stream.id)])

    assert ended.stderr.startswith("The test at ")
    assert ended.stderr.endswith(f"Z {told}\n")


def test_an_import_is_followed_by_its_command_but_not_an_erasure(app, tenant):
    user, run = create_user(tenant), app.test_cli_runner().invoke

    erased = run(args=["users", "delete", user.email, "--yes"], prog_name="flask")
    line = '{"type": "tenant", "idp_org_id": "org_new", "name": "New"}\n'
    imported = run(args=["imports", "create", "--body", "-"], input=line, prog_name="flask")

    assert erased.stderr == "Under way.\n"
    assert "flask imports show " in imported.stderr


def test_an_address_that_is_not_suppressed_is_refused_before_the_question(app):
    ended = app.test_cli_runner().invoke(args=["emails", "lift", "ada@acme.example"])

    assert (ended.exit_code, ended.stderr) == (1, "Error: There is no ada@acme.example.\n")


def test_a_change_of_nothing_is_refused(app, tenant):
    ended = app.test_cli_runner().invoke(args=["tenants", "update", tenant.slug])

    assert (ended.exit_code, ended.stderr) == (2, "Error: Give at least one option.\n")


class TestFlags:
    @pytest.fixture
    def run(self, app, tenant):
        create_preset(tenant.plan_name, reports=False)
        return lambda *words: app.test_cli_runner().invoke(
            args=["flags", *words], prog_name="flask"
        )

    def test_a_second_override_is_answered_with_the_command_that_changes_it(self, run, tenant):
        for _ in range(2):
            ended = run("override", tenant.slug, "reports", "true")

        command = f"flags update-override reports VALUE --tenant {tenant.slug}"
        assert ended.stderr.endswith(f"change that one. Run: flask {command}\n")
        changed = run("update-override", "reports", "false", "--tenant", tenant.slug)
        assert changed.exit_code == 0

    def test_one_that_no_plan_has_is_no_answer(self, run, tenant):
        ended = run("explain", tenant.slug, "report")

        assert (ended.exit_code, ended.stderr) == (1, "Did you mean reports?\n")


def test_a_command_of_the_past_does_not_speak_of_includes(app):
    help_of = app.test_cli_runner().invoke(args=["history", "show", "--help"]).stdout

    assert "--include" not in help_of
