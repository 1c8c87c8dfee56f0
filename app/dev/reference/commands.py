"""docs/reference/commands.md: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from app.dev.reference.markdown import page

INTRODUCTION = """\
`flask COMMAND --help` prints the same text. Results go to standard output; logs, progress, notes and questions go to standard error. The exit code is 0, 1 for a refusal or a fault, 2 for wrong arguments. The audit trail records a command as `cli:` and the name of the operating system's user.

The tenant is an argument of `flask tenants`, `flask usage` and `flask flags`. All other groups take it as `--tenant`, and so do lists, where it selects (`flask flags overrides --tenant acme`).

A table is as wide as its values (of each at most 500 characters), with a line for each row, so that `grep` works. On a terminal that is too narrow for it, each row is a block of lines `name: value`. `--json` prints JSON for scripts.

A command that does harm first asks, with the name of what it found. `--yes` answers.

`flask db upgrade` runs the migrations. `flask db downgrade` does not ask, and removes what the newer tables and columns hold."""
WIDTH = 80  # columns, as a terminal


def render(commands: Sequence[click.Command]) -> str:
    """The page: a section for each command or group, in the alphabet's order."""
    parts: list[str] = []
    for command in sorted(commands, key=lambda one: one.name or ""):
        parts.append(f"## flask {command.name}")
        if isinstance(command, click.Group):
            parts.append(command.get_short_help_str(limit=200))
        for words, one in named(command, f"flask {command.name}"):
            if one is not command:
                parts.append(f"### {words}")
            parts.append(f"```text\n{help_of(words, one)}\n```")
    return page("Commands", INTRODUCTION, *parts)


def named(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    """The command, or all commands of the group, by their words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, one in sorted(command.commands.items()):
        yield from named(one, f"{words} {name}")


def help_of(words: str, command: click.Command) -> str:
    with click.Context(command, info_name=words, terminal_width=WIDTH) as context:
        return command.get_help(context)
