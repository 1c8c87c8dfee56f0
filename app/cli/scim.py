"""``flask scim``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from app.cli.base import AppGroup, json_option, one_line_errors, operator, print_rows
from app.cli.lookup import find_tenant
from app.cli.records import paging_options, print_list
from app.core.db.pages import Paging
from app.core.errors import NotFound
from app.scim import service, trial
from app.scim.schemas import ScimConnectionSchema, ScimRequestSchema

COLUMNS = (
    "id", "tenant_id", "name", "provider", "status", "user_count", "request_count", "error_count",
    "last_request_at",
)  # fmt: skip
REQUEST_COLUMNS = ("sent_at", "method", "path", "status", "detail")

STEP_COLUMNS = ("step", "result", "detail")

scim = AppGroup("scim", help="Show, log and test the SCIM connections of directories.")


@contextmanager
def _named(connection_id: str) -> Iterator[None]:
    """Name the connection in the error where there is none."""
    try:
        yield
    except NotFound:
        raise click.ClickException(f"There is no SCIM connection {connection_id}.") from None


@scim.command("connections")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_connections(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List the connections of one tenant or of all tenants.

    Their tokens are not shown.
    """
    page = service.list_connections(paging, tenant_id=find_tenant(tenant).id if tenant else None)
    print_list(page.items, ScimConnectionSchema(), COLUMNS, as_json=as_json)


@scim.command("log")
@click.argument("connection_id")
@json_option
@operator
def show_log(connection_id: str, as_json: bool) -> None:
    """Show the last 100 requests of a connection, newest first.

    The values sent are not shown.
    """
    with _named(connection_id):
        found = service.list_requests(connection_id)
    print_list(found, ScimRequestSchema(), REQUEST_COLUMNS, as_json=as_json)


@scim.command("test")
@click.argument("connection_id")
@json_option
@one_line_errors
def test_connection(connection_id: str, as_json: bool) -> None:
    """Try a connection; exit 1 if a step fails.

    The service serves the requests of a directory that creates, finds, changes
    and deletes a user and a group. They are rolled back, so nothing remains and
    no event is sent. The network and the directory's own token are not tried.
    """
    with _named(connection_id):
        steps = trial.run(connection_id)
    print_rows([one._asdict() for one in steps], STEP_COLUMNS, as_json=as_json)
    if any(one.result != "ok" for one in steps):
        raise SystemExit(1)
