"""What holds for every command: help for strangers, JSON for scripts, a question before harm."""

import json
import re
from collections import Counter

import click
import pytest
from click.testing import CliRunner
from flask import Flask
from flask.cli import FlaskGroup, ScriptInfo

from app.cli import COMMANDS
from app.dev.commands import COMMANDS as DEVELOPMENT_COMMANDS
from app.dev.reference.commands import named

# They run until they are stopped, print no rows, or print JSON anyway.
WITHOUT_JSON = {
    "dev", "export", "jobs background", "jobs billing", "jobs log_streams", "jobs scheduler", "jobs sender", "jobs sequencer",
    "jobs worker", "mcp", "tenants export", "users export",
}  # fmt: skip
TOP = (*COMMANDS, *DEVELOPMENT_COMMANDS)
HARMFUL = {
    "api-keys revoke", "billing customers delete", "billing prices delete", "credits revoke", "custom-fields delete", "domains delete", "emails lift", "flags delete-override", "invitations revoke", "join-requests decline", "log-streams delete", "memberships deactivate", "permissions delete", "plans delete", "resources delete", "rewinds create", "role-assignments delete", "roles delete",
    "platform-admins remove", "scim delete", "setup-links revoke", "subscriptions cancel", "tenants delete", "tenants plan clear", "tenants suspend",
    "usage holds release", "users deactivate", "users delete", "users erase", "users update", "webhook-endpoints delete", "webhook-endpoints update",
}  # fmt: skip
FOR_ALL = {"api-keys create", "log-streams create", "roles create", "webhook-endpoints create"}
"""What these create concerns all tenants if none is named."""


def commands(app: Flask) -> dict[str, click.Command]:
    """Every command by its words."""
    with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
        return {words: one for top in TOP for words, one in named(top, top.name or "", context)}


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


class TestEveryCommand:
    def test_says_what_it_does(self, app):
        silent = [words for words, command in commands(app).items() if not command.help]
        silent += [group.name for group in COMMANDS if not group.help]

        assert silent == []

    def test_says_what_each_option_is_for(self, app):
        silent = [
            f"{words} {option.opts[0]}"
            for words, command in commands(app).items()
            for option in command.params
            if isinstance(option, click.Option) and not option.help
        ]

        assert silent == []

    def test_has_a_summary_that_is_not_cut(self, app):
        groups = {words.rpartition(" ")[0] for words in commands(app)}
        for words in groups:
            ended = app.test_cli_runner().invoke(
                args=[*words.split(), "--help"], env={"COLUMNS": "80"}
            )

            listed = ended.stdout.partition("Commands:")[2].splitlines()
            assert len(listed) > 1
            assert [line for line in listed if line.endswith("...")] == []

    def test_has_a_help_page_that_fits_a_terminal(self, app):
        for words in commands(app):
            ended = app.test_cli_runner().invoke(args=[*words.split(), "--help"])

            assert ended.exit_code == 0
            assert max(len(line) for line in ended.stdout.splitlines()) <= 80, words

    def test_prints_json_for_scripts(self, app):
        without = {words for words, one in commands(app).items() if "--json" not in options(one)}

        assert without == WITHOUT_JSON

    def test_asks_before_it_does_harm(self, app):
        asking = {words for words, one in commands(app).items() if "--yes" in options(one)}

        assert asking == HARMFUL | FOR_ALL

    def test_has_no_words_of_http(self, app):
        """No status, header, path, method or Markdown link, and options in place of parameters."""
        of_http = re.compile(
            r"\b[2-5]\d\d `|\(4\d\d\)|\b(ETag|GET|PATCH|POST)\b|`\?|=true|/v1/|\]\(|Null:|`q`"
        )
        helps = {
            words: [one.help or "", *(getattr(param, "help", "") or "" for param in one.params)]
            for words, one in commands(app).items()
        }

        found = [words for words, texts in helps.items() if of_http.search("\n".join(texts))]

        assert found == []

    def test_of_a_group_differs_from_the_others(self, app):
        summaries = Counter(
            (words.rpartition(" ")[0], one.get_short_help_str(limit=200))
            for words, one in commands(app).items()
        )

        assert [one for one, number in summaries.items() if number > 1] == []

    @pytest.mark.parametrize(
        ("words", "option", "example"),
        [
            ("plans create", "flags", {"flag_key": "single-sign-on"}),
            ("plans preview-rules", "rules", {"name": "growth-first"}),
            ("usage consume", "entries", {"feature": "api-calls"}),
            ("role-assignments create", "resource", {"type": "project"}),
            ("log-streams create", "config", {"url": "https://logs.example.com/ingest"}),
        ],
    )
    def test_has_an_example_of_json(self, app, words, option, example):
        [told] = [one.help for one in commands(app)[words].params if one.name == option]

        shown = json.loads(re.search(r"Such as '(.+?)'\.", told)[1])
        assert example.items() <= shown.items()

    def test_of_the_search_has_its_options(self, app):
        printed = app.test_cli_runner().invoke(args=["search", "--help"]).output

        assert all(f"\n  {option} " in printed for option in ("--types", "--json"))
        assert "\n  build " in printed

    def test_of_all_ends_with_the_first_steps(self, app, monkeypatch):
        monkeypatch.setenv("FLASK_RUN_FROM_CLI", "")  # the group sets it, for all programs to come
        ended = CliRunner().invoke(FlaskGroup(create_app=lambda: app), ["--help"])

        assert "Where to begin:\n    search QUERY" in ended.stdout


@pytest.mark.parametrize("words", ["roles create -h", "doctor -h", "usage holds -h"])
def test_has_a_short_option(app, words):
    ended = app.test_cli_runner().invoke(args=words.split())

    assert ended.exit_code == 0
    assert "-h, --help" in ended.stdout


def test_a_name_has_its_form(app):
    ended = app.test_cli_runner().invoke(args=["roles", "create", "--help"])

    assert "It cannot change. Form: a lower-case letter, then" in " ".join(ended.stdout.split())


def test_a_tenant_in_an_argument_is_always_required(app):
    ended = app.test_cli_runner().invoke(args=["usage", "show", "--help"])

    assert "TENANT: A tenant: its slug, id or idp_org_id.\n" in ended.stdout


def test_a_tenant_that_operators_must_name_is_marked(app):
    for words in ("invitations create", "users create", "role-assignments create"):
        ended = app.test_cli_runner().invoke(args=[*words.split(), "--help"])

        assert "[required, except for a tenant's credential]" in " ".join(ended.stdout.split())
