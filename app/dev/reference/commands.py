"""The contents of docs/reference/commands.md: the commands that no endpoint has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from flask import Flask
from flask.cli import ScriptInfo

from app.surfaces.commands.command import GeneratedCommand

INTRODUCTION = """\
`flask COMMAND --help` describes a command and its options. Results go to standard output; logs, progress, notes and questions go to standard error. The exit code is 0; 1 for a refusal, a fault, or an answer with `allowed: false` (`access explain`, `history explain`, `usage check`, `usage consume`) or a flag that the plan lacks (`flags explain`); 2 for wrong arguments, also where the service refuses their values (422). An error is one sentence. The audit trail records a command as `cli:` and the name of the operating system's user.

Most commands are generated from the operations of the OpenAPI document, with an option for each parameter and each field of the body, and have the rights of the platform. `--body FILE` takes a whole body in JSON. An option for a list or an object is repeated for each item (`--permission users:read --permission users:write`). Other values that are not text are JSON.

- A tenant is named by its slug, id or `idp_org_id`, a user by the e-mail address, id or `idp_user_id`, a membership by its id or the member's e-mail address, a plan by its name, a subscription by the provider's id, an override by the flag's key and `--tenant`.
- A time is a date, a time (UTC without an offset) or a span such as `14d`, `2w`, `12h`, `30m`, `45s`. A span leads into the future, and in a filter into the past, except in `--plan-ends-before` and `--certificate-ends-before`. `+` and `-` say which.
- A list prints one page, of `--limit` rows, after `--cursor`. `--all` reads all pages. `--order`, `--created-after`, `--created-before` and `--updated-after` are the API's [parameters](../concepts/requests.md#answers).
- `--json` prints JSON for scripts, errors included. Otherwise each row of a table is one line; in a pipe with tabs and whole values. A narrow terminal shortens and wraps them.
- A command that deletes, erases, revokes, cancels, declines, suspends, deactivates or rewinds asks first, also `update --no-active`, and a `create` without `--tenant` whose row would concern all tenants. `--yes` skips the question. Without an answer, as in a script, nothing is changed, and the exit code is 1.
- `eval "$(_FLASK_COMPLETE=bash_source flask)"` completes commands, options and values in bash (also `zsh_source` and `fish_source`).

[`controlplane`](../guides/clients.md#controlplane) has the generated commands over HTTP, with the rights of a token.

`flask db upgrade` runs the migrations. `flask db downgrade` removes the newer tables and columns with their data, without a question.

[Endpoints](endpoints.md) lists the generated commands. The others are these:"""


def parts(app: Flask, commands: Sequence[click.Command]) -> list[str]:
    """The introduction, and the commands that are not generated from an endpoint."""
    with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
        found = [
            line_of(*one)
            for command in sorted(commands, key=lambda one: one.name or "")
            for one in named(command, f"flask {command.name}", context)
            if not isinstance(one[1], GeneratedCommand)
        ]
    return [INTRODUCTION, "\n".join(found)]


def line_of(words: str, command: click.Command) -> str:
    """The command with its arguments, and what it does."""
    with click.Context(command, info_name=words) as context:
        usage = " ".join([words, *command.collect_usage_pieces(context)[1:]])
    return f"- `{usage}`: {command.get_short_help_str(limit=200)}"


def named(
    command: click.Command, words: str, context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    """The command, or all commands of the group, by their words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            yield from named(inner, f"{words} {name}", context)
