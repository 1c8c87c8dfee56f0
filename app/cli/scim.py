"""``flask scim``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import click

from app.auth.permissions import Role
from app.cli.base import AppGroup, json_option, one_line_errors, operator, print_rows
from app.cli.lookup import find_tenant
from app.cli.records import assignments, load, paging_options, print_list, print_one
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.core.errors import NotFound
from app.scim import service, trial
from app.scim.models import Deactivate, DirectoryProvider
from app.scim.schemas import (
    ScimConnectionCreatedSchema,
    ScimConnectionCreateSchema,
    ScimConnectionSchema,
    ScimRequestSchema,
    ScimRotationSchema,
)

COLUMNS = (
    "id", "tenant_id", "name", "provider", "status", "user_count", "request_count", "error_count",
    "last_request_at",
)  # fmt: skip
REQUEST_COLUMNS = ("sent_at", "method", "path", "status", "detail")

STEP_COLUMNS = ("step", "result", "detail")

scim = AppGroup("scim", help="Create, show, test and delete SCIM connections.")


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


@scim.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@click.option("--name", required=True, help="A name for people.")
@click.option(
    "--provider",
    type=click.Choice([provider.value for provider in DirectoryProvider]),
    help="The directory at the other end; by default generic.",
)
@click.option(
    "--default-role",
    type=click.Choice([role.value for role in Role]),
    help="The role of people whose groups give them none; by default member.",
)
@click.option(
    "--group-role",
    "group_roles",
    multiple=True,
    metavar="GROUP=ROLE",
    help="The role of a group's members; may be repeated.",
)
@click.option(
    "--deactivate",
    type=click.Choice([each.value for each in Deactivate]),
    help="What a deactivation ends; by default the membership.",
)
@json_option
@operator
def create(tenant: str, group_roles: tuple[str, ...], as_json: bool, **given: str | None) -> None:
    """Create a connection and show its token.

    No other command shows it. The directory sends it to /scim/v2. The connection makes its changes
    as an owner.
    """
    roles = assignments(group_roles, option="--group-role", form="GROUP=ROLE")
    values = load(ScimConnectionCreateSchema, {**given, "group_roles": roles})
    created = service.create(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    print_one(service.with_token(*created), ScimConnectionCreatedSchema(), as_json=as_json)


@scim.command("rotate")
@click.argument("connection_id")
@click.option(
    "--overlap-hours",
    type=int,
    help="How long the present token stays valid: 0 to 720 hours; by default 24.",
)
@json_option
@operator
def rotate(connection_id: str, overlap_hours: int | None, as_json: bool) -> None:
    """Replace the token of a connection and show the new one."""
    hours = load(ScimRotationSchema, {"overlap_hours": overlap_hours})["overlap_hours"]
    with _named(connection_id):
        rotated = service.rotate(connection_id, overlap=timedelta(hours=hours), actor=SYSTEM_CLI)
    print_one(service.with_token(*rotated), ScimConnectionCreatedSchema(), as_json=as_json)


@scim.command("delete")
@click.argument("connection_id")
@click.confirmation_option(prompt="Delete this connection?", help="Do not ask.")
@json_option
@operator
def delete(connection_id: str, as_json: bool) -> None:
    """Delete a connection.

    Its users and their memberships stay, and can be edited again.
    """
    with _named(connection_id):
        service.delete(connection_id, actor=SYSTEM_CLI)
    print_rows([{"deleted": connection_id}], ["deleted"], as_json=as_json)


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
