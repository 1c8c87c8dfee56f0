"""``flask audit tail``: follow the changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import click

from app.audit.outbox import TARGET_TYPE_OF
from app.cli.calls import find_tenant_id, in_process, rows_of
from app.cli.generated import OperationGroup
from app.core.clock import rfc3339, utcnow
from app.core.db.pages import MAX_LIMIT
from app.surfaces.commands.answers import get
from app.surfaces.commands.text import printable
from app.surfaces.operations import Send

OVERLAP = timedelta(seconds=10)
"""The changes of this period are read again, because a change is visible only after its commit."""
PATH = "/v1/audit-events"
INTERVAL = 1.0  # seconds between two readings

audit = OperationGroup("audit")
Event = Mapping[str, Any]


@audit.command("tail")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option(
    "--action",
    type=click.Choice(sorted(TARGET_TYPE_OF)),
    metavar="ACTION",
    help="Only this action, such as user.updated.",
)
@click.option(
    "--lines",
    default=10,
    show_default=True,
    type=click.IntRange(0, MAX_LIMIT),
    help="Changes to show first.",
)
def tail(tenant: str | None, action: str | None, lines: int) -> None:
    """Follow the changes, the newest at the bottom, until Ctrl-C.

    This is for people. A change that is committed more than ten seconds after it was made may be
    missing. Programs read GET /v1/audit-events instead.
    """
    send = in_process()
    filters = {} if action is None else {"action": action}
    if tenant is not None:
        filters["tenant_id"] = str(find_tenant_id(tenant))
    try:
        for event in follow(send, filters, lines):
            click.echo(_line(event))
    except KeyboardInterrupt:
        click.echo(err=True)


def follow(
    send: Send, filters: Mapping[str, str], lines: int, *, interval: float = INTERVAL
) -> Iterator[Event]:
    """Each change once: the last ``lines``, then the new ones. It does not end."""
    last_reading = utcnow()
    seen = {one["id"] for one in _read_since(send, last_reading - OVERLAP, filters)}
    if lines:
        newest = {**filters, "order": "-created_at", "limit": str(lines)}
        last = get(send, PATH, newest)
        yield from last[::-1]
        seen |= {one["id"] for one in last}
    while True:
        since, last_reading = last_reading - OVERLAP, utcnow()
        time.sleep(interval)
        found = list(_read_since(send, since, filters))
        yield from (one for one in found if one["id"] not in seen)
        seen = {one["id"] for one in found}


def _read_since(send: Send, since: datetime, filters: Mapping[str, str]) -> Iterator[Event]:
    """The changes at ``since`` or later, oldest first."""
    query = {**filters, "created_after": rfc3339(since), "order": "created_at"}
    return rows_of(send, PATH, query)


def _line(event: Event) -> str:
    """One change in one line, with the names of the fields that were changed."""
    words = [event["created_at"], event["action"], event["target_id"], f"by {event['actor']}"]
    if event["before"] and event["after"]:
        words.append(f"({', '.join(event['after'])})")
    return printable("  ".join(words))
