"""docs/reference/commands.md: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from flask import Flask
from flask.cli import ScriptInfo

from app.dev.reference.markdown import page

INTRODUCTION = """\
`flask COMMAND --help` prints the same text. Results go to standard output; logs, progress, notes and questions go to standard error. The exit code is 0, 1 for a refusal or a fault, 2 for wrong arguments. The audit trail records a command as `cli:` and the name of the operating system's user.

Most commands are generated of the operations of the OpenAPI document, and do what the operation does with the rights of the platform. They have an option for each parameter and each field of the body. `--body FILE` takes a whole body in JSON. An option for a list or an object is repeated, once for each item (`--permission users:read --permission users:write`, `--header Name=value`). Other values that are not text are JSON.

- A tenant is named by its slug, id or `idp_org_id`, a user by the e-mail address, id or `idp_user_id`, a membership by its id or the member's e-mail address, a plan by its name, a subscription by the provider's id, an override by the flag's key and `--tenant`.
- A time is a date, a time (UTC without an offset) or a span: `14d`, `2w`, `12h`, `30m`. A span is counted from now on, and back from now in a filter and where the help says so; `+` and `-` decide it.
- A list prints one page. `--all` reads all pages.
- `eval "$(_FLASK_COMPLETE=bash_source flask)"` completes commands, options and values in bash; there are `zsh_source` and `fish_source`, too.

An error is one sentence on standard error; with `--json` it is the JSON of the API's answer.

A table is as wide as its values (of each at most 500 characters), with a line for each row, so that `grep` works. On a terminal that is too narrow for it, each row is a block of lines `name: value`. `--json` prints JSON for scripts.

A command that deletes, revokes, erases or suspends first asks, with the name of what it found. `--yes` answers.

`flask db upgrade` runs the migrations. `flask db downgrade` does not ask, and removes what the newer tables and columns hold."""
WIDTH = 80  # columns, as a terminal


def render(app: Flask, commands: Sequence[click.Command]) -> str:
    """The page: a section for each command or group, in the alphabet's order."""
    parts: list[str] = []
    with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
        for command in sorted(commands, key=lambda one: one.name or ""):
            parts.append(f"## flask {command.name}")
            if isinstance(command, click.Group):
                parts.append(command.get_short_help_str(limit=200))
            for words, one in named(command, f"flask {command.name}", context):
                if one is not command:
                    parts.append(f"### {words}")
                parts.append(f"```text\n{help_of(words, one)}\n```")
    return page("Commands", INTRODUCTION, *parts)


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


def help_of(words: str, command: click.Command) -> str:
    with click.Context(command, info_name=words, terminal_width=WIDTH) as context:
        return command.get_help(context)
