"""``flask flags``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from app.cli.base import AppGroup, ask, json_option, operator, print_rows, yes_option
from app.cli.lookup import find_tenant
from app.cli.records import checked, from_json, paging_options, print_list, print_one, print_page
from app.cli.times import time_option
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.core.validation.fields import Str
from app.flags import evaluation, overrides, presets
from app.flags.evaluation import EffectiveFlag, FlagSet
from app.flags.explanation import explanation_of
from app.flags.flag_types import MAX_LIMIT, FlagType, fits
from app.flags.schemas import (
    EffectiveFlagSchema,
    FlagExplanationSchema,
    OverrideCreateSchema,
    OverrideSchema,
    OverrideUpdateSchema,
)

flags = AppGroup("flags", help="List and explain a tenant's flags. Change its overrides.")
OVERRIDE, EFFECTIVE = OverrideSchema(), EffectiveFlagSchema()
EFFECTIVE_COLUMNS = ("key", "type", "value", "source", "preset_value", "override_value")
OVERRIDE_COLUMNS = ("id", "tenant_id", "plan_preset_id", "flag_key", "flag_value")
VALUES: dict[str, str] = {
    FlagType.BOOLEAN: "true or false",
    FlagType.STRING: "a text in quotes, such as '\"dark\"'",
    FlagType.NUMBER: "a number",
    FlagType.LIMIT: f"an integer from 0 to {MAX_LIMIT}, or -1 for unlimited",
}
"""What a flag of the type takes; ``json`` takes all."""


class ExplanationSchema(FlagExplanationSchema):
    """The explanation of the API, and the tenant's slug."""

    tenant = Str()


@flags.command("explain")
@click.argument("tenant")
@click.argument("key")
@json_option
@operator
def explain(tenant: str, key: str, as_json: bool) -> None:
    """Show a tenant's flag and what decided its value.

    That is the preset, an override or the suspension.
    """
    row = find_tenant(tenant)
    found = evaluation.evaluate(row.id, key)
    told = explanation_of(row.id, found, _flag(found, key))
    print_one({**told, "tenant": row.slug}, ExplanationSchema(), as_json=as_json)


@flags.command("list")
@click.argument("tenant")
@json_option
@operator
def list_flags(tenant: str, as_json: bool) -> None:
    """List a tenant's effective flags."""
    found = evaluation.evaluate_all(find_tenant(tenant).id)
    if not found.flags and presets.find_preset(found.plan_name) is None:
        click.echo(f"No preset is named {found.plan_name}, the tenant's plan.", err=True)
    print_list(list(found.flags.values()), EFFECTIVE, EFFECTIVE_COLUMNS, as_json=as_json)


@flags.command("overrides")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_overrides(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List overrides, including expired ones."""
    tenant_id = find_tenant(tenant).id if tenant else None
    page = overrides.list_overrides(paging, tenant_id=tenant_id)
    print_page(page, OVERRIDE, OVERRIDE_COLUMNS, as_json=as_json)


@flags.command("override", context_settings={"ignore_unknown_options": True})  # JSON may be -1
@click.argument("tenant")
@click.argument("flag_key", metavar="KEY")
@click.argument("flag_value", metavar="JSON")
@time_option("--expires-at", help="From then on the preset's value applies again.")
@click.option(
    "--carry-over/--no-carry-over",
    default=None,
    help="Whether it goes along to the tenant's next plan; by default as it is, for a new one not.",
)
@json_option
@operator
def set_override(
    tenant: str,
    flag_key: str,
    flag_value: str,
    expires_at: datetime | None,
    carry_over: bool | None,
    as_json: bool,
) -> None:
    """Give a tenant its own value of a flag of its plan. A string needs quotes: '"dark"'."""
    row = find_tenant(tenant)
    flag, value = _flag(evaluation.evaluate(row.id, flag_key), flag_key), from_json(flag_value)
    if not fits(flag.type, value):
        raise click.UsageError(f"JSON: {flag_key} is a {flag.type}: {VALUES[flag.type]}.")
    given: dict[str, Any] = {"flag_value": value}
    if expires_at:
        given["expires_at"] = expires_at
    if carry_over is not None:
        given["carry_over"] = carry_over
    if flag.override_id is None:
        values = checked(OverrideCreateSchema, {"flag_key": flag_key, **given})
        override = overrides.create_override(row.id, **values, actor=SYSTEM_CLI)
    else:
        values = {"expires_at": None, **checked(OverrideUpdateSchema, given)}
        override = overrides.update_override(
            flag.override_id, values, is_superadmin=True, actor=SYSTEM_CLI
        )
    print_one(override, OVERRIDE, as_json=as_json)


@flags.command("delete-override")
@click.argument("override_id")
@yes_option
@json_option
def delete_override(override_id: str, yes: bool, as_json: bool) -> None:
    """Delete an override; the preset's value applies again."""
    override = operator(overrides.get_override)(override_id)
    tenant = operator(find_tenant)(str(override.tenant_id))
    ask(f"Delete the override of {override.flag_key} for {tenant.slug}?", yes=yes)
    operator(overrides.delete_override)(override_id, actor=SYSTEM_CLI)
    print_rows([{"deleted": override_id}], ["deleted"], as_json=as_json)


def _flag(found: FlagSet, key: str) -> EffectiveFlag:
    if key not in found.flags:
        raise click.ClickException(f"The plan {found.plan_name} has no flag {key}.")
    return found.flags[key]
