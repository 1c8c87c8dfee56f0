"""``flask scim``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from app.auth.permissions import Role
from app.cli.base import (
    AppGroup,
    F,
    ask,
    json_option,
    one_line_errors,
    operator,
    print_rows,
    yes_option,
)
from app.cli.lookup import find_tenant
from app.cli.records import (
    assignments,
    from_json,
    load,
    paging_options,
    print_list,
    print_one,
    print_page,
)
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.scim import service, trial
from app.scim.models import ConnectionStatus, Deactivate, DirectoryProvider
from app.scim.schemas import (
    ScimConnectionCreatedSchema,
    ScimConnectionCreateSchema,
    ScimConnectionSchema,
    ScimConnectionUpdateSchema,
    ScimRequestSchema,
    ScimRotationSchema,
)

COLUMNS = (
    "id", "tenant_id", "name", "provider", "status", "user_count", "request_count", "error_count",
    "last_request_at",
)  # fmt: skip
REQUEST_COLUMNS = ("sent_at", "method", "path", "status", "detail")

STEP_COLUMNS = ("step", "result", "detail")

scim = AppGroup("scim", help="Create, change, test and delete SCIM connections.")


def field_options(command: F) -> F:
    """Add the options of ``create`` and ``update``; :func:`_fields` reads them."""
    options = (
        click.option(
            "--provider",
            type=click.Choice([provider.value for provider in DirectoryProvider]),
            help="The directory at the other end; of a new connection generic.",
        ),
        click.option(
            "--default-role",
            type=click.Choice([role.value for role in Role]),
            help="The role of people whose groups give them none; of a new connection member.",
        ),
        click.option(
            "--group-role",
            "group_roles",
            multiple=True,
            metavar="GROUP=ROLE",
            help="The role of a group's members; may be repeated.",
        ),
        click.option(
            "--deactivate",
            type=click.Choice([each.value for each in Deactivate]),
            help="What a deactivation ends; of a new connection the membership.",
        ),
        click.option(
            "--public-key",
            "public_keys",
            multiple=True,
            metavar="JWK",
            help="A key of a client that signs assertions (RFC 7523), as JSON; may be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _fields(
    *, group_roles: tuple[str, ...], public_keys: tuple[str, ...], **others: str | None
) -> dict[str, Any]:
    roles = assignments(group_roles, option="--group-role", form="GROUP=ROLE")
    keys = [from_json(key) for key in public_keys]
    return {**others, "group_roles": roles or None, "public_keys": keys or None}


@scim.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_connections(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List the connections of one tenant or of all tenants.

    Their tokens are not shown.
    """
    page = service.list_connections(paging, tenant_id=find_tenant(tenant).id if tenant else None)
    print_page(page, ScimConnectionSchema(), COLUMNS, as_json=as_json)


@scim.command("show")
@click.argument("connection_id")
@json_option
@operator
def show(connection_id: str, as_json: bool) -> None:
    """Show a connection, without its token."""
    print_one(service.get_connection(connection_id), ScimConnectionSchema(), as_json=as_json)


@scim.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@click.option("--name", required=True, help="A name for people.")
@field_options
@json_option
@operator
def create(tenant: str, as_json: bool, **given: Any) -> None:
    """Create a connection and show its token.

    No other command shows it. The directory sends it to /scim/v2. The connection makes its changes
    as an owner.
    """
    values = load(ScimConnectionCreateSchema, _fields(**given))
    created = service.create(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    print_one(created, ScimConnectionCreatedSchema(), as_json=as_json)


@scim.command("update")
@click.argument("connection_id")
@click.option("--name", help="A name for people.")
@field_options
@click.option("--no-group-roles", "without_roles", is_flag=True, help="Remove all group roles.")
@click.option("--no-public-keys", "without_keys", is_flag=True, help="Remove all public keys.")
@click.option(
    "--status",
    type=click.Choice([each.value for each in ConnectionStatus]),
    help="The requests of a disabled connection are refused.",
)
@json_option
@operator
def update(
    connection_id: str, without_roles: bool, without_keys: bool, as_json: bool, **given: Any
) -> None:
    """Change a connection.

    Group roles and public keys replace the present ones. Members follow new group roles when their
    groups next change.
    """
    fields = _fields(**given)
    if without_roles:
        fields["group_roles"] = {}
    if without_keys:
        fields["public_keys"] = []
    values = load(ScimConnectionUpdateSchema, fields)
    changed = service.update(connection_id, values, actor=SYSTEM_CLI)
    print_one(changed, ScimConnectionSchema(), as_json=as_json)


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
    rotated = service.rotate(connection_id, overlap=timedelta(hours=hours), actor=SYSTEM_CLI)
    print_one(rotated, ScimConnectionCreatedSchema(), as_json=as_json)


@scim.command("delete")
@click.argument("connection_id")
@yes_option
@json_option
def delete(connection_id: str, yes: bool, as_json: bool) -> None:
    """Delete a connection.

    Its users and their memberships stay, and can be edited again.
    """
    connection = operator(service.get_connection)(connection_id)
    tenant = operator(find_tenant)(str(connection.tenant_id))
    ask(f"Delete the connection {connection.name} of {tenant.slug}?", yes=yes)
    operator(service.delete)(connection_id, actor=SYSTEM_CLI)
    print_rows([{"deleted": connection_id}], ["deleted"], as_json=as_json)


@scim.command("log")
@click.argument("connection_id")
@json_option
@operator
def show_log(connection_id: str, as_json: bool) -> None:
    """Show the last 100 requests of a connection, newest first.

    The values sent are not shown.
    """
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
    steps = trial.run(connection_id)
    print_rows([one._asdict() for one in steps], STEP_COLUMNS, as_json=as_json)
    if any(one.result != "ok" for one in steps):
        raise SystemExit(1)
