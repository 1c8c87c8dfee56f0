"""The groups of commands that are generated from the API's operations."""

from __future__ import annotations

import click

from ..operations import Operation, Send
from .command import GeneratedCommand
from .names import GROUPS, WITHOUT_A_WORD, spellings


class OperationGroup(click.Group):
    """A group of commands: those of its operations, which are made when a command is asked for.

    A command that was added by hand takes precedence.
    """

    is_complete = False

    def __init__(self, name: str, help: str = "") -> None:
        metavar = "QUERY" if name in WITHOUT_A_WORD else None
        super().__init__(name, help=help or GROUPS[name], subcommand_metavar=metavar)

    def operations(self, ctx: click.Context) -> list[Operation]:
        """All operations of the service."""
        raise NotImplementedError

    def connect(self, ctx: click.Context) -> Send:
        """The client that sends the requests of a command."""
        raise NotImplementedError

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._complete(ctx)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._complete(ctx)
        return super().list_commands(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, also those of the command whose word may be left out."""
        command = self.get_command(ctx, WITHOUT_A_WORD.get(self.name or "", ""))
        if command is None:
            super().format_options(ctx, formatter)
        else:
            command.format_options(ctx, formatter)
            self.format_commands(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the word that may be left out, as ``for`` in ``search QUERY``."""
        word = WITHOUT_A_WORD.get(self.name or "")
        if word and args and args[0] not in (*self.list_commands(ctx), *ctx.help_option_names):
            args = [word, *args]
        return super().parse_args(ctx, args)

    def _complete(self, ctx: click.Context) -> None:
        if self.is_complete:
            return
        all_operations = self.operations(ctx)
        self.is_complete = True
        for operation in all_operations:
            for spelling in spellings(operation):
                if spelling.words[0] == self.name:
                    self._add(GeneratedCommand(operation, spelling, all_operations, self.connect))

    def _add(self, command: GeneratedCommand) -> None:
        group: click.Group = self
        above, name = command.spelling.words[:-1], command.spelling.words[-1]
        for depth, word in enumerate(above[1:], start=2):
            inner = click.Group(word, help=GROUPS[" ".join(above[:depth])])
            found = group.commands.setdefault(word, inner)
            assert isinstance(found, click.Group)  # noqa: S101 - no command has a group's name
            group = found
        group.commands.setdefault(name, command)
