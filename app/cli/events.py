"""``flask events tail``: follow the event feed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import click

from app.cli.calls import find_tenant_id, in_process
from app.cli.generated import OperationGroup
from app.core.db.tenancy import platform_transaction
from app.core.json_text import dumps_text
from app.events import service
from app.events.sequencer import INTERVAL
from app.surfaces.commands.answers import succeeded
from app.surfaces.commands.text import printable
from app.surfaces.operations import Request

COLUMNS = ("position", "timestamp", "type", "tenant_id", "actor", "id")

events = OperationGroup("events")


@events.command("tail")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--types", help="Only these, such as membership.*,tenant.created.")
@click.option("--after", type=click.IntRange(0), help="After this position.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def tail(tenant: str | None, types: str | None, after: int | None, as_json: bool) -> None:
    """Print events as they come, until Ctrl-C.

    It begins now, or after the position of --after.
    """
    send = in_process()
    query = {} if types is None else {"types": types}
    if tenant is not None:
        query["tenant_id"] = str(find_tenant_id(tenant))
    if after is None:
        with platform_transaction():
            after = service.last_position()
    query["after"] = str(after)
    with suppress(KeyboardInterrupt):
        while True:
            page = succeeded(send(Request("GET", "/v1/events", query, {}))).body
            for event in page["data"]:
                click.echo(dumps_text(event) if as_json else _line(event))
            query["after"] = page["next_cursor"] or query["after"]
            if not page["data"]:
                time.sleep(INTERVAL)


def _line(event: dict[str, Any]) -> str:
    values = (event[name] for name in COLUMNS)
    return printable("  ".join("-" if value is None else str(value) for value in values))
