"""The generated groups of commands in ``flask``: they call the API in this process."""

from __future__ import annotations

import click
from flask.cli import AppGroup, ScriptInfo

from app.cli.base import Group
from app.cli.calls import in_process
from app.surfaces.commands import operation_groups
from app.surfaces.commands.names import WHERE_TO_BEGIN
from app.surfaces.in_process import operations
from app.surfaces.operations import Operation, Send


class Commands(AppGroup):
    """The commands of an application. One that does not exist is refused with a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names. The help of ``flask`` asks for them, and ends with the first steps."""
        ctx.command.epilog = WHERE_TO_BEGIN
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            raise click.NoSuchCommand(cmd_name, possibilities=self.commands, ctx=ctx)
        return found


class OperationGroup(operation_groups.OperationGroup, Group):
    """Generated commands with the operator's rights, and commands by hand."""

    def operations(self, ctx: click.Context) -> list[Operation]:
        return operations(ctx.ensure_object(ScriptInfo).load_app())

    def connect(self, ctx: click.Context) -> Send:
        return in_process(ctx.ensure_object(ScriptInfo).load_app())
