"""``flask emails``."""

from __future__ import annotations

from typing import Any

import click

from app.cli.base import AppGroup, json_option, operator, print_rows
from app.cli.records import paging_options, print_page
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import ListOrder, Paging
from app.emails import service, suppressions
from app.emails.events import Cause, EmailKind
from app.emails.schemas import EmailEventSchema, SuppressionSchema

EVENT_COLUMNS = ("occurred_at", "source", "kind", "recipient", "message_id", "reason")
SUPPRESSION_COLUMNS = ("address", "cause", "scope", "source", "suppressed_at")

emails = AppGroup("emails", help="Show e-mail events, and keep the suppression list.")


@emails.command("events")
@click.option("--recipient", help="Only to this address.")
@click.option("--message-id", help="Only of this message.")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in EmailKind]),
    metavar="KIND",
    help=f"Only these: {', '.join(EmailKind)}.",
)
@paging_options(ListOrder.NEWEST_FIRST)
@json_option
@operator
def list_events(
    recipient: str | None, message_id: str | None, kind: str | None, paging: Paging, as_json: bool
) -> None:
    """List e-mail events."""
    equal: dict[str, Any] = {"kind": kind} if kind else {}
    page = service.list_events(paging, recipient=recipient, message_id=message_id, **equal)
    print_page(page, EmailEventSchema(), EVENT_COLUMNS, as_json=as_json)


@emails.command("suppressions")
@click.option("--address", help="Only of this address.")
@click.option("--cause", type=click.Choice([cause.value for cause in Cause]), help="Only these.")
@paging_options()
@json_option
@operator
def list_suppressions(
    address: str | None, cause: str | None, paging: Paging, as_json: bool
) -> None:
    """List the suppressed addresses."""
    equal = {"cause": cause} if cause else {}
    page = suppressions.list_active(paging, address=address, **equal)
    print_page(page, SuppressionSchema(), SUPPRESSION_COLUMNS, as_json=as_json)


@emails.command("lift")
@click.argument("address")
@json_option
@operator
def lift(address: str, as_json: bool) -> None:
    """Remove an address from the suppression list."""
    suppressions.lift(address, actor=SYSTEM_CLI)
    print_rows([{"address": address, "lifted": True}], ["address", "lifted"], as_json=as_json)
