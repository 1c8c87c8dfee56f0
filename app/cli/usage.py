"""``flask usage``."""

from __future__ import annotations

import click

from app.cli.base import AppGroup, json_option, operator
from app.cli.lookup import find_tenant
from app.cli.records import load, print_one, print_page
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import MAX_LIMIT
from app.usage import service
from app.usage.schemas import CorrectionSchema, UsageSchema

COLUMNS = ("feature", "limit", "used", "remaining", "over_by", "period_start", "resets_at")
RESET = "Reset by an operator"

usage = AppGroup("usage", help="Show and correct what tenants use of their limits.")
SHAPE = UsageSchema()


@usage.command("show")
@click.argument("tenant")
@click.option("--feature", help="Only of this limit.")
@click.option(
    "--limit",
    default=MAX_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="The largest number of rows.",
)
@json_option
@operator
def show(tenant: str, feature: str | None, limit: int, as_json: bool) -> None:
    """Show a tenant's current and past periods by limit, newest first."""
    page = service.list_usage(find_tenant(tenant).id, feature=feature, limit=limit)
    print_page(page, SHAPE, COLUMNS, as_json=as_json)


@usage.command("set")
@click.argument("tenant")
@click.argument("feature")
@click.argument("used")
@click.option("--reason", required=True, help="Why; the audit trail shows it.")
@json_option
@operator
def set_used(tenant: str, feature: str, used: str, reason: str, as_json: bool) -> None:
    """Set what a tenant has used of a limit in the current period."""
    values = load(CorrectionSchema, {"used": used, "reason": reason})
    _correct(tenant, feature, **values, as_json=as_json)


@usage.command("reset")
@click.argument("tenant")
@click.argument("feature")
@click.option("--reason", default=RESET, show_default=True, help="The audit trail shows it.")
@json_option
@operator
def reset(tenant: str, feature: str, reason: str, as_json: bool) -> None:
    """Set what a tenant has used of a limit in the current period to 0."""
    _correct(tenant, feature, 0, reason=reason, as_json=as_json)


def _correct(tenant: str, feature: str, used: int, *, reason: str, as_json: bool) -> None:
    """Set what is used and print the result; what was used before goes to standard error."""
    tenant_id = find_tenant(tenant).id
    before = service.list_usage(tenant_id, feature=feature, limit=1).items
    row = service.correct(tenant_id, feature, used, reason=reason, actor=SYSTEM_CLI)
    click.echo(f"Used before: {before[0].used}.", err=True)
    print_one(row, SHAPE, as_json=as_json)
