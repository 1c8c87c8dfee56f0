"""``flask users``."""

from __future__ import annotations

from typing import Any

import click

from app.cli.base import AppGroup, ask, json_option, operator, yes_option
from app.cli.lookup import find_tenant, find_user
from app.cli.privacy import erase_user, export_user
from app.cli.records import (
    assignments,
    from_json,
    load,
    paging_options,
    print_one,
    print_page,
    set_option,
)
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.privacy import user_erasure
from app.privacy.schemas import UserErasureSchema
from app.users import service
from app.users.schemas import (
    UserCreateSchema,
    UserMetaDataPatchSchema,
    UserSchema,
    UserUpdateSchema,
)

COLUMNS = ("id", "email", "first_name", "last_name", "idp_user_id", "idp_org_id", "is_active")

users = AppGroup("users", help="Create, change, deactivate, export and erase users.")
tenant_option = click.option("--tenant", help="Only in this tenant (slug or id).")
SHAPE = UserSchema()
users.add_command(export_user)
users.add_command(erase_user)


@users.command("list")
@tenant_option
@click.option("--email", help="Only with this e-mail address, in whatever case.")
@click.option("--idp-user-id", help="Only with this id at the identity provider.")
@click.option("--active/--inactive", "is_active", default=None, help="Only these.")
@paging_options()
@json_option
@operator
def list_users(tenant: str | None, paging: Paging, as_json: bool, **equal: Any) -> None:
    """List users."""
    page = service.list_users(
        paging,
        tenant_id=find_tenant(tenant).id if tenant else None,
        filters={name: value for name, value in equal.items() if value is not None},
    )
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@users.command("show")
@click.argument("user")
@tenant_option
@json_option
@operator
def show(user: str, tenant: str | None, as_json: bool) -> None:
    """Show a user, named by id or e-mail address."""
    print_one(find_user(user, tenant), SHAPE, as_json=as_json)


@users.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@click.option("--idp-user-id", required=True, help="The user's id at the identity provider.")
@click.option("--email", required=True, help="The e-mail address.")
@click.option("--first-name", help="The given name.")
@click.option("--last-name", help="The family name.")
@click.option("--meta-data", metavar="JSON", help="A JSON object.")
@json_option
@operator
def create(tenant: str, meta_data: str | None, as_json: bool, **given: str | None) -> None:
    """Create a user."""
    values = load(UserCreateSchema, {**given, "meta_data": from_json(meta_data)})
    row = service.create(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@users.command("update")
@click.argument("user")
@tenant_option
@set_option
@json_option
@operator
def update(user: str, tenant: str | None, fields: tuple[str, ...], as_json: bool) -> None:
    """Change fields of a user, such as --set first_name=Ada."""
    values = load(UserUpdateSchema, assignments(fields))
    row = service.update(find_user(user, tenant).id, values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@users.command("deactivate")
@click.argument("user")
@tenant_option
@json_option
@operator
def deactivate(user: str, tenant: str | None, as_json: bool) -> None:
    """Deactivate a user. The next request with the user's token is refused."""
    row = service.update(find_user(user, tenant).id, {"is_active": False}, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@users.command("activate")
@click.argument("user")
@tenant_option
@json_option
@operator
def activate(user: str, tenant: str | None, as_json: bool) -> None:
    """Activate a user."""
    row = service.update(find_user(user, tenant).id, {"is_active": True}, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@users.command("delete")
@click.argument("user")
@tenant_option
@yes_option
@json_option
def delete(user: str, tenant: str | None, yes: bool, as_json: bool) -> None:
    """Erase one user of one tenant in the background.

    DELETE /v1/users/{id} does the same. What the platform stores about the person is erased too,
    unless they are in another tenant.
    """
    found = operator(find_user)(user, tenant)
    ask(f"Erase {found.email} of {found.idp_org_id} for good?", yes=yes)
    row = operator(user_erasure.request)(found.id, actor=SYSTEM_CLI)
    print_one(row, UserErasureSchema(), as_json=as_json)


@users.command("patch-meta-data")
@click.argument("user")
@click.argument("patches", metavar="JSON")
@tenant_option
@json_option
@operator
def patch_meta_data(user: str, patches: str, tenant: str | None, as_json: bool) -> None:
    """Merge-patch a user's metadata: null removes a key.

    JSON is a merge patch (RFC 7396).
    """
    body = load(UserMetaDataPatchSchema, {"patches": from_json(patches)})
    row = service.patch_meta_data(find_user(user, tenant).id, body["patches"], actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)
