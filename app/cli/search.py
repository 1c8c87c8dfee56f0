"""``flask search``."""

from __future__ import annotations

import click
from flask.cli import with_appcontext

from app.cli.base import AppGroup, json_option, operator, print_json, print_rows, progress_bar
from app.cli.lookup import find_tenant
from app.cli.records import load
from app.search import builder, service
from app.search.models import EntityType
from app.search.schemas import SearchQuerySchema, SearchResultSchema
from app.search.service import MAX_LIMIT

COLUMNS = ("type", "title", "subtitle", "tenant", "matched", "id")
SHAPE = SearchResultSchema(many=True)
FIND = "for"


class SearchGroup(AppGroup):
    """A group whose first argument may be a query instead of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [FIND, *args]
        return super().parse_args(ctx, args)


search = SearchGroup(
    "search",
    help="Find tenants, users and more: flask search QUERY.",
)


@search.command(FIND)
@click.argument("q", metavar="QUERY...", nargs=-1, required=True)
@click.option("--types", help=f"Only these, separated by commas: {', '.join(EntityType)}.")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option(
    "--limit",
    default=MAX_LIMIT,
    show_default=True,
    type=click.IntRange(1, MAX_LIMIT),
    help="The largest number of results.",
)
@json_option
@operator
def find(
    q: tuple[str, ...], types: str | None, tenant: str | None, limit: int, as_json: bool
) -> None:
    """Find by the beginnings of words, or of an id.

    The words are those of a name, slug or e-mail address. The word "for" may be left out: flask
    search ada lovelace.
    """
    wanted = load(SearchQuerySchema, {"q": " ".join(q), "types": types, "limit": limit})
    results = service.search(
        wanted["q"],
        entity_types=wanted.get("types", tuple(EntityType)),
        tenant_id=find_tenant(tenant).id if tenant else None,
        limit=limit,
    )
    shown = SHAPE.dump(results)
    if as_json:
        print_json(shown)
    else:
        rows = [{**row, "tenant": (row["tenant"] or {}).get("slug")} for row in shown]
        print_rows(rows, COLUMNS, as_json=False)


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
