"""``flask search``: a query, or ``build``."""

from __future__ import annotations

import click
from flask.cli import with_appcontext

from app.cli.base import json_option, operator
from app.cli.generated import OperationGroup
from app.cli.output import print_rows, progress_bar
from app.search import builder
from app.search.models import EntityType

FIND = "for"


class SearchGroup(OperationGroup):
    """A group whose first argument may be a query instead of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.list_commands(ctx), *ctx.help_option_names):
            args = [FIND, *args]
        return super().parse_args(ctx, args)


search = SearchGroup("search")


@search.command("build")
@json_option
@with_appcontext
def build(as_json: bool) -> None:
    """Build the search terms of all rows in this process.

    A worker does this once after the upgrade that brings the search. The build adds what is
    missing; meanwhile everything that has terms is found. A worker continues the work if this
    command is interrupted.
    """
    rows = []
    with progress_bar() as bar:
        for entity_type in EntityType:
            _restart(entity_type)
            task = bar.add_task(entity_type.value, total=None)
            for step in builder.work(entity_type):
                bar.update(task, completed=step.done, total=step.total)
            rows.append({"type": entity_type.value, "rows": step.done})
    print_rows(rows, ("type", "rows"), as_json=as_json)


@operator
def _restart(entity_type: EntityType) -> None:
    builder.restart(entity_type)
