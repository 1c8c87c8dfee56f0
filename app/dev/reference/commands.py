"""docs/reference/commands.md: every command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from flask import Flask
from flask.cli import ScriptInfo

from app.cli.command import GeneratedCommand
from app.dev.reference.markdown import page, table

INTRODUCTION = """\
`flask COMMAND --help` describes a command and its options. Results go to standard output; logs, progress, notes and questions go to standard error. The exit code is 0, 1 for a refusal or a fault, 2 for wrong arguments. The audit trail records a command as `cli:` and the name of the operating system's user.

Most commands are generated from the operations of the OpenAPI document, and do what the operation does with the rights of the platform. They have an option for each parameter and each field of the body. `--body FILE` takes a whole body in JSON. An option for a list or an object is repeated, once for each item (`--permission users:read --permission users:write`, `--header Name=value`). Other values that are not text are JSON.

- A tenant is named by its slug, id or `idp_org_id`, a user by the e-mail address, id or `idp_user_id`, a membership by its id or the member's e-mail address, a plan by its name, a subscription by the provider's id, an override by the flag's key and `--tenant`.
- A time is a date, a time (UTC without an offset) or a span: `14d`, `2w`, `12h`, `30m`. A span is counted from now on, and back from now in a filter and where the help says so; `+` and `-` decide it.
- A list prints one page, of `--limit` rows, after `--cursor`. `--all` reads all pages. `--order` is `created_at` or `-created_at`, the newest first; `--created-after`, `--created-before` and `--updated-after` select by time.
- `eval "$(_FLASK_COMPLETE=bash_source flask)"` completes commands, options and values in bash; there are `zsh_source` and `fish_source`, too.

An error is one sentence on standard error; with `--json` it is the JSON of the API's answer.

A table is as wide as its values (of each at most 500 characters), with a line for each row, so that `grep` works. On a terminal that is too narrow for it, each row is a block of lines `name: value`. `--json` prints JSON for scripts.

A command that deletes, revokes, erases or suspends first asks, with the name of what it found. `--yes` answers.

`flask db upgrade` runs the migrations. `flask db downgrade` does not ask, and removes what the newer tables and columns hold."""
WIDTH = 80  # columns, as a terminal
COMMON = (
    "--all", "--body", "--created-after", "--created-before", "--cursor", "--json", "--limit",
    "--order", "--updated-after", "--yes",
)  # fmt: skip
"""The options that the introduction describes."""


def render(app: Flask, commands: Sequence[click.Command]) -> str:
    """The page: a section for each command or group, in the alphabet's order.

    A generated command is a row of a table, because ``--help`` prints the document's descriptions.
    """
    parts: list[str] = []
    with click.Context(app.cli, obj=ScriptInfo(create_app=lambda: app)) as context:
        for command in sorted(commands, key=lambda one: one.name or ""):
            parts.append(f"## flask {command.name}")
            if isinstance(command, click.Group):
                parts.append(command.get_short_help_str(limit=200))
            found = list(named(command, f"flask {command.name}", context))
            rows = [row_of(words, one) for words, one in found if isinstance(one, GeneratedCommand)]
            if rows:
                parts.append(table(("Command", "What it does", "Options"), rows))
            for words, one in found:
                if not isinstance(one, GeneratedCommand):
                    parts += [f"### {words}"] if one is not command else []
                    parts.append(f"```text\n{help_of(words, one)}\n```")
    return page("Commands", INTRODUCTION, *parts)


def row_of(words: str, command: GeneratedCommand) -> tuple[str, ...]:
    """The command with its arguments, what it does, and its options but those of most commands."""
    with click.Context(command, info_name=words) as context:
        usage = " ".join([words, *command.collect_usage_pieces(context)[1:]])
    options = [one.opts[0] for one in command.params if isinstance(one, click.Option)]
    shown = ", ".join(f"`{one}`" for one in options if one not in COMMON)
    return f"`{usage}`", command.short_help or "", shown


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
