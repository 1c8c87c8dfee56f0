"""``flask api-keys``."""

from __future__ import annotations

from datetime import timedelta

import click

from app.api_keys import service
from app.api_keys.schemas import ApiKeyCreatedSchema, ApiKeyCreateSchema, ApiKeySchema
from app.auth.permissions import Permission
from app.cli.base import AppGroup, ask, json_option, operator, yes_option
from app.cli.lookup import find_tenant
from app.cli.records import load, paging_options, print_one, print_page
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.pages import Paging

COLUMNS = ("id", "name", "prefix", "tenant_id", "permissions", "expires_at", "revoked_at")
PERMISSIONS = click.Choice([permission.value for permission in Permission])

api_keys = AppGroup("api-keys", help="Create, list and revoke the credentials of services.")
SHAPE = ApiKeySchema()


@api_keys.command("create")
@click.option("--name", required=True, help="The purpose of the key.")
@click.option(
    "--permission",
    "permissions",
    required=True,
    multiple=True,
    type=PERMISSIONS,
    metavar="PERMISSION",
    help=f"May be repeated: {', '.join(Permission)}.",
)
@click.option(
    "--tenant", help="The key's tenant (slug or id). Without it the key is a platform key."
)
@click.option(
    "--days", type=click.IntRange(1, 36_500), help="The key expires after this number of days."
)
@json_option
@operator
def create(
    name: str, permissions: tuple[str, ...], tenant: str | None, days: int | None, as_json: bool
) -> None:
    """Create a key and show its secret, which is not stored."""
    values = load(ApiKeyCreateSchema, {"name": name, "permissions": list(permissions)})
    key, secret = service.create(
        **values,
        tenant_id=find_tenant(tenant).id if tenant else None,
        expires_at=utcnow() + timedelta(days=days) if days else None,
        actor=SYSTEM_CLI,
    )
    print_one(service.with_secret(key, secret), ApiKeyCreatedSchema(), as_json=as_json)


@api_keys.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--usable/--ended", "is_active", default=None, help="Only these.")
@paging_options()
@json_option
@operator
def list_keys(tenant: str | None, is_active: bool | None, paging: Paging, as_json: bool) -> None:
    """List keys, without their secrets."""
    page = service.list_keys(
        paging, tenant_id=find_tenant(tenant).id if tenant else None, is_active=is_active
    )
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@api_keys.command("show")
@click.argument("key_id")
@json_option
@operator
def show(key_id: str, as_json: bool) -> None:
    """Show a key, without its secret."""
    print_one(service.get_key(key_id), SHAPE, as_json=as_json)


@api_keys.command("revoke")
@click.argument("key_id")
@yes_option
@json_option
def revoke(key_id: str, yes: bool, as_json: bool) -> None:
    """Revoke a key: the next request with it is refused."""
    key = operator(service.get_key)(key_id)
    ask(f"Revoke the key {key.name} ({key.prefix}…) permanently?", yes=yes)
    print_one(operator(service.revoke)(key_id, actor=SYSTEM_CLI), SHAPE, as_json=as_json)
