"""``flask events``."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import click
from flask.cli import with_appcontext

from app.cli.base import AppGroup, json_option, operator, printable
from app.cli.lookup import find_tenant
from app.cli.records import load, print_list, print_one
from app.core.json_text import dumps_text, plain
from app.events import service
from app.events.schemas import EventSchema, FeedQuerySchema
from app.events.sequencer import INTERVAL
from app.events.service import FeedPage

COLUMNS = ("position", "timestamp", "type", "tenant_id", "actor", "id")
SHAPE = EventSchema()

events = AppGroup("events", help="Read and follow the event feed.")
tenant_option = click.option("--tenant", help="Only of this tenant (slug or id).")
types_option = click.option("--types", help="Only these, such as membership.*,tenant.created.")
after_option = click.option("--after", type=click.IntRange(0), help="After this position.")


@events.command("list")
@tenant_option
@types_option
@after_option
@click.option(
    "--limit",
    default=service.DEFAULT_LIMIT,
    show_default=True,
    type=click.IntRange(1, service.MAX_LIMIT),
    help="The largest number of events.",
)
@json_option
@operator
def list_events(as_json: bool, **query: Any) -> None:
    """List events, oldest first."""
    print_list(_read(**query).items, SHAPE, COLUMNS, as_json=as_json)


@events.command("show")
@click.argument("event_id")
@json_option
@operator
def show(event_id: str, as_json: bool) -> None:
    """Show an event."""
    print_one(service.get_event(event_id), SHAPE, as_json=as_json)


@events.command("tail")
@tenant_option
@types_option
@after_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@with_appcontext
def tail(after: int | None, as_json: bool, **query: Any) -> None:
    """Print events as they come, until Ctrl-C.

    It begins now, or after the position of --after.
    """
    read, last_position = operator(_read), operator(service.last_position)
    position = str(last_position() if after is None else after)
    with suppress(KeyboardInterrupt):
        while True:
            page = read(after=position, **query)
            position = page.next_cursor or position
            for row in page.items:
                event = SHAPE.dump(row)
                if as_json:
                    click.echo(dumps_text(event))
                else:
                    click.echo(printable("  ".join(_text(event[name]) for name in COLUMNS)))
            if not page.items:
                time.sleep(INTERVAL)


def _read(
    *,
    tenant: str | None,
    types: str | None,
    after: int | str | None = None,
    limit: int = service.DEFAULT_LIMIT,
) -> FeedPage:
    return service.list_events(
        None if after is None else str(after),
        types=load(FeedQuerySchema, {"types": types}).get("types"),
        tenant_id=find_tenant(tenant).id if tenant else None,
        limit=limit,
    )


def _text(value: Any) -> str:
    match value:
        case None:
            return "-"
        case str() | int():
            return str(value)
        case _:
            return plain(value)
