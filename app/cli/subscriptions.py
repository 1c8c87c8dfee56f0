"""``flask subscriptions reconcile``."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from app.cli.base import json_option
from app.cli.calls import find_tenant_id, in_process, rows_of
from app.cli.generated import OperationGroup
from app.core.actors import SYSTEM_CLI
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.plans import following
from app.surfaces.commands.output import progress_bar
from app.surfaces.commands.text import print_text

subscriptions = OperationGroup("subscriptions")


def _tenant_ids(named: str | None) -> Sequence[UUID]:
    if named is not None:
        return [find_tenant_id(named)]
    return [UUID(row["id"]) for row in rows_of(in_process(), "/v1/tenants", {})]


@subscriptions.command("reconcile")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@json_option
def reconcile(tenant: str | None, as_json: bool) -> None:
    """Classify all subscriptions and set all tenants' plans again.

    A subscription is classified by its state. Run it after an upgrade with new states, or after a
    change of DEFAULT_PLAN. Each tenant has its own transaction. To ask a provider for its
    subscriptions use flask billing reconcile.
    """
    tenant_ids = _tenant_ids(tenant)
    changed = 0
    with progress_bar() as bar:
        for tenant_id in bar.track(tenant_ids, description="Tenants"):
            with transaction():
                tenancy.enter(tenancy.Scope(tenant_id))
                changed += following.reconcile(tenant_id, actor=SYSTEM_CLI)
    told = f"{len(tenant_ids)} tenants checked, {changed} rows changed."
    print_text(told, {"tenants": len(tenant_ids), "rows_changed": changed}, as_json=as_json)
