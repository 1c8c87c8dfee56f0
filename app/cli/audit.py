"""``flask audit``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import click

from app.audit import history, service
from app.audit.outbox import TARGET_TYPE_OF, TARGET_TYPES
from app.audit.schemas import AuditEventSchema, HistoryEntrySchema
from app.cli.base import AppGroup, json_option, operator, print_json, print_rows, printable
from app.cli.lookup import find_tenant, find_user
from app.cli.records import paging_options, tell_of_more
from app.cli.times import time_option
from app.core.clock import rfc3339, utcnow
from app.core.db.models import Row
from app.core.db.pages import MAX_LIMIT, ListOrder, Page, Paging
from app.core.db.queries import id_or_none
from app.core.json_text import dumps_text
from app.core.validation.schemas import Schema

COLUMNS = ("created_at", "action", "target_id", "actor", "changes")
HISTORY_COLUMNS = ("created_at", "action", "actor_name", "actor", "changes")
OVERLAP = timedelta(seconds=10)
"""The changes of this period are read again, because a change is visible only after its commit."""
INTERVAL = 1.0  # seconds between two readings

audit = AppGroup("audit", help="Show who changed what, and follow the changes.")
tenant_option = click.option("--tenant", help="Only of this tenant (slug or id).")
TYPES = click.Choice(TARGET_TYPES)
action_option = click.option(
    "--action",
    type=click.Choice(sorted(TARGET_TYPE_OF)),
    metavar="ACTION",
    help="Only this action, such as user.updated.",
)


@audit.command("list")
@tenant_option
@click.option(
    "--target-type",
    type=TYPES,
    metavar="TYPE",
    help=f"Only of this type: {', '.join(TYPES.choices)}.",
)
@click.option("--target-id", help="Only of this row.")
@click.option("--actor", help="Only by this actor: a user's id, platform:…, key:… or system:….")
@action_option
@time_option("--after", "created_after", help="Only at this time or later.")
@time_option("--before", "created_before", help="Only before this time.")
@paging_options(ListOrder.NEWEST_FIRST)
@json_option
@operator
def list_events(
    tenant: str | None,
    created_after: datetime | None,
    created_before: datetime | None,
    paging: Paging,
    as_json: bool,
    **equal: str | None,
) -> None:
    """List changes."""
    page = service.list_events(
        replace(paging, created_after=created_after, created_before=created_before),
        tenant_id=find_tenant(tenant).id if tenant else None,
        filters=_given(equal),
    )
    _print(page, AuditEventSchema(), COLUMNS, as_json=as_json)


@audit.command("history", epilog=f"TYPE is one of {', '.join(TYPES.choices)}.")
@click.argument("target_type", type=TYPES, metavar="TYPE")
@click.argument("row_id", metavar="ID")
@paging_options(ListOrder.NEWEST_FIRST)
@json_option
@operator
def show_history(target_type: str, row_id: str, paging: Paging, as_json: bool) -> None:
    """List the changes of one row, also after its deletion.

    A tenant can also be named by its slug, a user by the e-mail address.
    """
    finders: dict[str, Callable[[str], Row]] = {"tenant": find_tenant, "user": find_user}
    find = finders.get(target_type)
    if find is not None and id_or_none(row_id) is None:
        row_id = str(find(row_id).id)
    page = history.list_history(target_type, row_id, paging)
    if not page.items:
        raise click.ClickException(f"No change of {target_type} {row_id} is recorded.")
    _print(page, HistoryEntrySchema(), HISTORY_COLUMNS, as_json=as_json)


@audit.command("tail")
@tenant_option
@action_option
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
    try:
        for event in follow(_tenant_id(tenant), _given({"action": action}), lines):
            click.echo(_line(event))
    except KeyboardInterrupt:
        click.echo(err=True)


def follow(
    tenant_id: UUID | None,
    filters: Mapping[str, str],
    lines: int,
    *,
    interval: float = INTERVAL,
) -> Iterator[Any]:
    """Each change once: the last ``lines``, then the new ones. It does not end."""
    last_reading = utcnow()
    since = last_reading - OVERLAP
    seen = {one.id: one.created_at for one in _read_since(since, tenant_id, filters)}
    if lines:
        last = _read(Paging(lines, order=ListOrder.NEWEST_FIRST), tenant_id, filters)
        yield from last.items[::-1]
        seen |= {one.id: one.created_at for one in last.items}
    while True:
        since = last_reading - OVERLAP
        seen = {id_: moment for id_, moment in seen.items() if moment >= since}
        time.sleep(interval)
        last_reading = utcnow()
        for event in _read_since(since, tenant_id, filters):
            if event.id not in seen:
                seen[event.id] = event.created_at
                yield event


def _read_since(
    since: datetime, tenant_id: UUID | None, filters: Mapping[str, str]
) -> Iterator[Any]:
    """The changes at ``since`` or later, oldest first."""
    paging = Paging(MAX_LIMIT, created_after=since)
    while True:
        page = _read(paging, tenant_id, filters)
        yield from page.items
        if page.next_cursor is None:
            return
        paging = replace(paging, cursor=page.next_cursor)


@operator
def _read(paging: Paging, tenant_id: UUID | None, filters: Mapping[str, str]) -> Page:
    return service.list_events(paging, tenant_id=tenant_id, filters=filters)


@operator
def _tenant_id(tenant: str | None) -> UUID | None:
    return find_tenant(tenant).id if tenant else None


def _given(filters: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in filters.items() if value is not None}


def _print(page: Page, schema: Schema, columns: Sequence[str], *, as_json: bool) -> None:
    """Print the events as JSON, or as a table with the values of the changed fields."""
    shown = [schema.dump(event) for event in page.items]
    if as_json:
        print_json(shown)
    else:
        print_rows([{**one, "changes": _changes(one)} for one in shown], columns, as_json=False)
    tell_of_more(page)


def _changes(event: Mapping[str, Any]) -> str:
    """The changed fields with both values; empty for a new or a deleted row, which has many."""
    before, after = event["before"], event["after"]
    both = [name for name in after if name in before]
    return "; ".join(
        f"{name}: {dumps_text(before[name])} → {dumps_text(after[name])}" for name in both
    )


def _line(event: Any) -> str:
    """One change in one line, with the names of the fields that were changed."""
    words = [rfc3339(event.created_at), event.action, event.target_id, f"by {event.actor}"]
    if event.before and event.after:
        words.append(f"({', '.join(event.after)})")
    return printable("  ".join(words))
