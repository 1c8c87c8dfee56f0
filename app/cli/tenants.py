"""``flask tenants delete``, ``deletions`` and ``free-idp-org-id``."""

from __future__ import annotations

import click

from app.cli.base import json_option, yes_option
from app.cli.calls import in_process
from app.cli.generated import OperationGroup
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.db.tenancy import platform_transaction
from app.surfaces.commands.output import print_fields, print_rows
from app.surfaces.commands.refusals import ask
from app.surfaces.commands.resolver import Resolver
from app.tenants import deletion
from app.tenants.schemas import TenantDeletionSchema

DELETION = TenantDeletionSchema()
COLUMNS = ("tenant_id", "slug", "deletes_at", "stage", "requested_at", "requested_by")

tenants = OperationGroup("tenants")


@tenants.command("delete")
@click.argument("tenant")
@click.option("--now", "at_once", is_flag=True, help="Without waiting for TENANT_GRACE_DAYS.")
@yes_option
@json_option
def delete(tenant: str, at_once: bool, yes: bool, as_json: bool) -> None:
    """Delete a suspended tenant with all its data.

    It is deleted after TENANT_GRACE_DAYS. Until then it can be restored. First run: flask tenants
    export TENANT.
    """
    row = Resolver(in_process()).find("tenant", tenant)
    if row["is_active"]:
        raise deletion.TenantActive
    when = "now, for good" if at_once else f"after {current_config().tenant_grace_days} day(s)"
    ask(f"Delete {row['slug']} with all its data {when}?", yes=yes)
    with platform_transaction():
        requested = deletion.request(row["id"], row["slug"], at_once=at_once, actor=SYSTEM_CLI)
    print_fields(DELETION.dump(requested), as_json=as_json)


@tenants.command("deletions")
@json_option
@platform_transaction()
def list_deletions(as_json: bool) -> None:
    """List the tenants that will be deleted, by their dates."""
    shown = [DELETION.dump(one) for one in deletion.list_deletions()]
    print_rows(shown, COLUMNS, as_json=as_json)


@tenants.command("free-idp-org-id")
@click.argument("idp_org_id")
@json_option
@platform_transaction()
def free_idp_org_id(idp_org_id: str, as_json: bool) -> None:
    """Let a tenant have the idp_org_id of a deleted one again."""
    deletion.free_idp_org_id(idp_org_id, actor=SYSTEM_CLI)
    print_rows([{"freed": idp_org_id}], ["freed"], as_json=as_json)
