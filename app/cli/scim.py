"""``flask scim``."""

from __future__ import annotations

import click

from app.cli.base import AppGroup, json_option, operator
from app.cli.lookup import find_tenant
from app.cli.records import paging_options, print_list
from app.core.db.pages import Paging
from app.scim import service
from app.scim.schemas import ScimConnectionSchema, ScimRequestSchema

COLUMNS = ("id", "tenant_id", "name", "provider", "status", "user_count", "error_count")
REQUEST_COLUMNS = ("sent_at", "method", "path", "status", "detail")

scim = AppGroup("scim", help="Show the SCIM connections of directories, and what they send.")


@scim.command("connections")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_connections(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List the connections of a tenant, or of all tenants, without their tokens."""
    page = service.list_connections(paging, tenant_id=find_tenant(tenant).id if tenant else None)
    print_list(page.items, ScimConnectionSchema(), COLUMNS, as_json=as_json)


@scim.command("log")
@click.argument("connection_id")
@json_option
@operator
def show_log(connection_id: str, as_json: bool) -> None:
    """Show the last 100 requests of a connection, the newest first, without the values sent."""
    found = service.list_requests(connection_id)
    print_list(found, ScimRequestSchema(), REQUEST_COLUMNS, as_json=as_json)
