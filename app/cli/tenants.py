"""``flask tenants``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from app.cli.base import AppGroup, ask, json_option, operator, print_json, print_rows, yes_option
from app.cli.lookup import find_tenant
from app.cli.privacy import export_tenant
from app.cli.records import (
    assignments,
    checked,
    from_json,
    load,
    paging_options,
    print_list,
    print_one,
    print_page,
    set_option,
)
from app.cli.times import time_option
from app.config import current_config
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.core.db.queries import find_row
from app.subscriptions import plan_assignments, plan_decision
from app.subscriptions.models import PlanAssignment
from app.subscriptions.schemas import PlanAssignmentSchema, PlanDecisionSchema
from app.tenants import counts, deletion, service
from app.tenants.models import Tenant
from app.tenants.schemas import (
    SuspensionSchema,
    TenantCountsSchema,
    TenantCreateSchema,
    TenantDeletionSchema,
    TenantMetaDataPatchSchema,
    TenantMetaDataSchema,
    TenantSchema,
    TenantUpdateSchema,
)

COLUMNS = ("id", "slug", "name", "idp_org_id", "plan_name", "is_active", "created_at")

tenants = AppGroup("tenants", help="Create, change, suspend, export and delete tenants.")
SHAPE, DELETION = TenantSchema(), TenantDeletionSchema()
META_DATA_SHAPE = TenantMetaDataSchema()
DELETION_COLUMNS = ("tenant_id", "slug", "deletes_at", "stage", "requested_at", "requested_by")
tenants.add_command(export_tenant)
PLAN = PlanDecisionSchema()
PLAN_COLUMNS = (
    "decides", "source", "plan_name", "bp_subscription_id", "bp_status", "start_date", "until",
    "because",
)  # fmt: skip


@tenants.command("list")
@click.option("--active/--suspended", "is_active", default=None, help="Only these.")
@click.option("--plan", "plan_name", help="Only with this plan.")
@paging_options()
@json_option
@operator
def list_tenants(paging: Paging, as_json: bool, **equal: Any) -> None:
    """List tenants."""
    filters = {name: value for name, value in equal.items() if value is not None}
    page = service.list_tenants(paging, filters=filters)
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@tenants.command("show")
@click.argument("tenant")
@json_option
@operator
def show(tenant: str, as_json: bool) -> None:
    """Show a tenant, named by slug or id."""
    print_one(find_tenant(tenant), SHAPE, as_json=as_json)


@tenants.command("counts")
@click.argument("tenant")
@json_option
@operator
def show_counts(tenant: str, as_json: bool) -> None:
    """Count a tenant's users, members, API keys and more.

    At most 10,000 rows of a kind are counted.
    """
    print_one(counts.get_counts(find_tenant(tenant).id), TenantCountsSchema(), as_json=as_json)


@tenants.command("create")
@click.option("--idp-org-id", required=True, help="The organization's id at the identity provider.")
@click.option("--name", required=True, help="The company's name.")
@click.option("--slug", help="By default derived from the name.")
@set_option
@json_option
@operator
def create(
    idp_org_id: str, name: str, slug: str | None, fields: tuple[str, ...], as_json: bool
) -> None:
    """Create a tenant."""
    given = {"idp_org_id": idp_org_id, "name": name, "slug": slug, **assignments(fields)}
    tenant = service.create(load(TenantCreateSchema, given), actor=SYSTEM_CLI)
    print_one(tenant, SHAPE, as_json=as_json)


@tenants.command("update")
@click.argument("tenant")
@set_option
@json_option
@operator
def update(tenant: str, fields: tuple[str, ...], as_json: bool) -> None:
    """Change fields of a tenant, such as --set name=Acme."""
    values = load(TenantUpdateSchema, assignments(fields))
    row = service.update(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@tenants.command("show-meta-data")
@click.argument("tenant")
@json_option
@operator
def show_meta_data(tenant: str, as_json: bool) -> None:
    """Show a tenant's metadata."""
    print_one(find_tenant(tenant), META_DATA_SHAPE, as_json=as_json)


@tenants.command("patch-meta-data")
@click.argument("tenant")
@click.argument("patches", metavar="JSON")
@json_option
@operator
def patch_meta_data(tenant: str, patches: str, as_json: bool) -> None:
    """Merge-patch a tenant's metadata: null removes a key.

    JSON is a merge patch (RFC 7396).
    """
    body = load(TenantMetaDataPatchSchema, {"patches": from_json(patches)})
    row = service.patch_meta_data(find_tenant(tenant).id, body["patches"], actor=SYSTEM_CLI)
    print_one(row, META_DATA_SHAPE, as_json=as_json)


@tenants.command("suspend")
@click.argument("tenant")
@yes_option
@click.option("--reason", help="Why; the tenant's owners and admins can read it.")
@json_option
def suspend(tenant: str, yes: bool, reason: str | None, as_json: bool) -> None:
    """Suspend a tenant. The next request with its credentials is refused.

    Of a suspended tenant, --reason changes only the reason.
    """
    values = None if reason is None else load(SuspensionSchema, {"reason": reason})
    found = operator(find_tenant)(tenant)
    ask(f"Refuse all credentials of {found.slug}?", yes=yes)
    if values is None:
        row = operator(service.set_active)(found.id, False, actor=SYSTEM_CLI)
    else:
        row = operator(service.suspend)(found.id, **values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@tenants.command("activate")
@click.argument("tenant")
@json_option
@operator
def activate(tenant: str, as_json: bool) -> None:
    """Activate a suspended tenant."""
    row = service.set_active(find_tenant(tenant).id, True, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


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
    row = operator(_find_suspended)(tenant)
    days = current_config().tenant_grace_days
    when = "now, for good" if at_once else f"after {days} day(s)"
    ask(f"Delete {row.slug} with all its data {when}?", yes=yes)
    requested = operator(deletion.request)(row.id, row.slug, at_once=at_once, actor=SYSTEM_CLI)
    print_one(requested, DELETION, as_json=as_json)


def _find_suspended(named: str) -> Tenant:
    tenant = find_tenant(named)
    if tenant.is_active:
        raise deletion.TenantActive
    return tenant


@tenants.command("restore")
@click.argument("tenant")
@json_option
@operator
def restore(tenant: str, as_json: bool) -> None:
    """Withdraw the deletion of a tenant; it stays suspended."""
    row = deletion.restore(find_tenant(tenant).id, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@tenants.command("deletions")
@json_option
@operator
def list_deletions(as_json: bool) -> None:
    """List the tenants that will be deleted, by their dates."""
    print_list(deletion.list_deletions(), DELETION, DELETION_COLUMNS, as_json=as_json)


@tenants.command("free-idp-org-id")
@click.argument("idp_org_id")
@json_option
@operator
def free_idp_org_id(idp_org_id: str, as_json: bool) -> None:
    """Let a tenant have the idp_org_id of a deleted one again."""
    deletion.free_idp_org_id(idp_org_id, actor=SYSTEM_CLI)
    print_rows([{"freed": idp_org_id}], ["freed"], as_json=as_json)


@tenants.group("plan")
def plan() -> None:
    """Show what decides a tenant's plan, and assign one."""


@plan.command("show")
@click.argument("tenant")
@json_option
@operator
def show_plan(tenant: str, as_json: bool) -> None:
    """Show a tenant's plan and what decides it.

    Each other candidate is shown with the reason why it does not decide.
    """
    _print_plan(find_tenant(tenant), as_json=as_json)


@plan.command("set")
@click.argument("tenant")
@click.argument("plan_name", metavar="PLAN")
@time_option("--until", help="When the plan ends; by default when it is cleared.")
@click.option("--reason", help="Such as pilot, comped or internal; by default as it was.")
@json_option
@operator
def set_plan(
    tenant: str, plan_name: str, until: datetime | None, reason: str | None, as_json: bool
) -> None:
    """Assign PLAN to a tenant, before every subscription.

    Run it again to change or extend the assignment.
    """
    row = find_tenant(tenant)
    given: dict[str, Any] = {"plan_name": plan_name, "until": until}
    if reason is not None:
        given["reason"] = reason
    values = checked(PlanAssignmentSchema, given)
    plan_assignments.assign(row.id, **values, actor=SYSTEM_CLI)
    _print_plan(row, as_json=as_json)


@plan.command("clear")
@click.argument("tenant")
@yes_option
@json_option
def clear_plan(tenant: str, yes: bool, as_json: bool) -> None:
    """Delete a tenant's assigned plan.

    The tenant's subscription or the default plan decides again.
    """
    row, assigned = _find_assigned(tenant)
    ask(f"Delete the assigned plan {assigned} of {row.slug}?", yes=yes)
    operator(plan_assignments.withdraw)(row.id, actor=SYSTEM_CLI)
    operator(_print_plan)(row, as_json=as_json)


@operator
def _find_assigned(named: str) -> tuple[Tenant, str]:
    """The tenant and its assigned plan; ClickException if there is none."""
    tenant = find_tenant(named)
    assignment = find_row(PlanAssignment, tenant_id=tenant.id)
    if assignment is None:
        raise click.ClickException(f"No plan is assigned to {tenant.slug}.")
    return tenant, assignment.plan_name


def _print_plan(tenant: Tenant, *, as_json: bool) -> None:
    shown = PLAN.dump(plan_decision.explain(tenant.id))
    if as_json:
        print_json(shown)
        return
    print_rows(shown["candidates"], PLAN_COLUMNS, as_json=False)
    click.echo(f"The tenant has the plan {shown['plan_name']}. {shown['because']}")
