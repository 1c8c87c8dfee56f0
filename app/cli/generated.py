"""The groups of commands that are generated from the API's operations."""

from __future__ import annotations

import click
from flask.cli import AppGroup, ScriptInfo

from app.cli.command import GeneratedCommand
from app.cli.names import GROUPS, spellings
from app.surfaces.in_process import operations


class Commands(AppGroup):
    """The commands of an application. One that does not exist is refused with a suggestion."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            raise click.NoSuchCommand(cmd_name, possibilities=self.commands, ctx=ctx)
        return found


class OperationGroup(AppGroup):
    """A group of commands: those of its operations, which are made when one is asked for.

    A command that was added by hand takes precedence.
    """

    is_complete = False

    def __init__(self, name: str) -> None:
        super().__init__(name, help=GROUPS[name])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._complete(ctx)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._complete(ctx)
        return super().list_commands(ctx)

    def _complete(self, ctx: click.Context) -> None:
        if self.is_complete:
            return
        all_operations = operations(ctx.ensure_object(ScriptInfo).load_app())
        self.is_complete = True
        for operation in all_operations:
            for spelling in spellings(operation):
                if spelling.words[0] == self.name:
                    self._add(GeneratedCommand(operation, spelling, all_operations))

    def _add(self, command: GeneratedCommand) -> None:
        group: click.Group = self
        above, name = command.spelling.words[:-1], command.spelling.words[-1]
        for depth, word in enumerate(above[1:], start=2):
            inner = click.Group(word, help=GROUPS[" ".join(above[:depth])])
            found = group.commands.setdefault(word, inner)
            assert isinstance(found, click.Group)  # noqa: S101 - no command has a group's name
            group = found
        group.commands.setdefault(name, command)
