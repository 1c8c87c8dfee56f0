"""``flask subscriptions``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click

from app.cli.base import AppGroup, json_option, one_line_errors, operator, print_json, progress_bar
from app.cli.lookup import find_subscription, find_tenant, list_tenant_ids
from app.cli.records import assignments, load, paging_options, print_one, print_page, set_option
from app.cli.times import time_option
from app.core.actors import SYSTEM_CLI
from app.core.db import tenancy
from app.core.db.pages import Paging
from app.core.db.transactions import transaction
from app.subscriptions import plans, service
from app.subscriptions.models import Subscription
from app.subscriptions.schemas import (
    SubscriptionCancelSchema,
    SubscriptionCreateSchema,
    SubscriptionSchema,
    SubscriptionUpdateSchema,
)
from app.subscriptions.statuses import StatusClass

COLUMNS = ("id", "bp_subscription_id", "bp_status", "plan_name", "start_date", "auto_renew")

subscriptions = AppGroup("subscriptions", help="List, create, change and cancel subscriptions.")
SHAPE = SubscriptionSchema()


@subscriptions.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--bp-status", help="Only with exactly this provider's word.")
@click.option("--bp-customer-id", help="Only of this customer at the provider.")
@click.option(
    "--status-class",
    type=click.Choice([status_class.value for status_class in StatusClass]),
    help="Only with a provider's word of this class.",
)
@paging_options()
@json_option
@operator
def list_subscriptions(
    tenant: str | None, status_class: str | None, paging: Paging, as_json: bool, **equal: str | None
) -> None:
    """List subscriptions."""
    page = service.list_subscriptions(
        paging,
        tenant_id=find_tenant(tenant).id if tenant else None,
        status_class=status_class,
        **{name: value for name, value in equal.items() if value is not None},
    )
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@subscriptions.command("show")
@click.argument("subscription")
@json_option
@operator
def show(subscription: str, as_json: bool) -> None:
    """Show a subscription, named by id or by the provider's id."""
    print_one(find_subscription(subscription), SHAPE, as_json=as_json)


@subscriptions.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@set_option
@json_option
@operator
def create(tenant: str, fields: tuple[str, ...], as_json: bool) -> None:
    """Create a subscription; the tenant's plan follows."""
    values = load(SubscriptionCreateSchema, assignments(fields))
    row, has_plan = service.create(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    _warn_of_unknown_plan(row, has_plan)
    print_one(row, SHAPE, as_json=as_json)


@subscriptions.command("update")
@click.argument("subscription")
@set_option
@time_option("--source-timestamp", help="The provider's time of the values.")
@json_option
@operator
def update(
    subscription: str, fields: tuple[str, ...], source_timestamp: datetime | None, as_json: bool
) -> None:
    """Change fields, such as --set bp_status=active.

    The subscription is named by id or by the provider's id. The tenant's plan follows.
    """
    values = load(SubscriptionUpdateSchema, assignments(fields))
    row_id = find_subscription(subscription).id
    updated = service.update_subscription(
        row_id, values, source_timestamp=source_timestamp, actor=SYSTEM_CLI
    )
    if not updated.is_applied:
        click.echo("Ignored: a newer update has been applied.", err=True)
    _warn_of_unknown_plan(updated.subscription, updated.has_plan)
    print_one(updated.subscription, SHAPE, as_json=as_json)


def _warn_of_unknown_plan(row: Subscription, has_plan: bool) -> None:
    if not has_plan:
        warning = f"No preset is named {row.plan_name}, so this plan has no effect yet."
        click.echo(warning, err=True)


@subscriptions.command("cancel")
@click.argument("subscription")
@click.option("--at-period-end", is_flag=True, help="End with the paid period instead of now.")
@click.option("--reason", help="Why the customer cancels.")
@time_option("--canceled-at", help="When it was canceled; by default now.")
@json_option
@operator
def cancel(
    subscription: str,
    at_period_end: bool,
    reason: str | None,
    canceled_at: datetime | None,
    as_json: bool,
) -> None:
    """Record a cancellation; the provider is not called.

    The subscription is named by id or by the provider's id.
    """
    given = {"at_period_end": at_period_end, "reason": reason, "canceled_at": canceled_at}
    values = load(SubscriptionCancelSchema, given)
    row = service.cancel(find_subscription(subscription).id, **values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@operator
def _tenant_ids(named: str | None) -> Sequence[UUID]:
    return list_tenant_ids() if named is None else [find_tenant(named).id]


@subscriptions.command("reconcile")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@json_option
@one_line_errors
def reconcile(tenant: str | None, as_json: bool) -> None:
    """Classify all subscriptions and set all tenants' plans again.

    A subscription is classified by its state. Run it after an upgrade with new states, or after a
    change of DEFAULT_PLAN. Each tenant has its own transaction.
    """
    tenant_ids = _tenant_ids(tenant)
    changed = 0
    with progress_bar() as bar:
        for tenant_id in bar.track(tenant_ids, description="Tenants"):
            with transaction():
                tenancy.enter(tenancy.Scope(tenant_id))
                changed += plans.reconcile(tenant_id, actor=SYSTEM_CLI)
    result = {"tenants": len(tenant_ids), "rows_changed": changed}
    if as_json:
        print_json(result)
    else:
        click.echo(f"{result['tenants']} tenants checked, {changed} rows changed.")
