"""``flask flags export``."""

from __future__ import annotations

import click

from app.cli.base import json_option
from app.cli.calls import in_process
from app.cli.generated import OperationGroup
from app.core.db.tenancy import platform_transaction
from app.flags import flagd
from app.surfaces.commands.resolver import Resolver
from app.surfaces.commands.text import print_json

flags = OperationGroup("flags")


@flags.command("export")
@click.option("--flagd", "_", is_flag=True, required=True, help="The form, which must be named.")
@click.option("--plan", help="Only the tenants whose plan has this name.")
@click.option("--tenant", help="Only this tenant: its id, slug or idp_org_id.")
@json_option
def export(_: bool, plan: str | None, tenant: str | None, as_json: bool) -> None:
    """Print the flags of all tenants as a flagd document."""
    row = Resolver(in_process()).find("tenant", tenant) if tenant else {"id": None}
    with platform_transaction():
        print_json(flagd.document(plan=plan, tenant_id=row["id"]))
