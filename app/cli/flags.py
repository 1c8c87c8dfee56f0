"""``flask flags``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import IO, Any

import click

from app.cli.base import AppGroup, json_option, operator, print_json, print_rows
from app.cli.lookup import find_tenant
from app.cli.records import checked, load, paging_options, print_list, print_one
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.core.validation.fields import Str
from app.flags import evaluation, overrides, presets
from app.flags.evaluation import EffectiveFlag, FlagSet
from app.flags.explanation import explanation_of
from app.flags.models import PlanPreset
from app.flags.schemas import (
    EffectiveFlagSchema,
    FlagExplanationSchema,
    OverrideCreateSchema,
    OverrideSchema,
    OverrideUpdateSchema,
    PlanPresetCreateSchema,
    PlanPresetSchema,
)

flags = AppGroup("flags", help="Change plan presets and overrides. Explain a tenant's flags.")
PRESET, OVERRIDE, EFFECTIVE = PlanPresetSchema(), OverrideSchema(), EffectiveFlagSchema()
FLAG_COLUMNS = ("flag_key", "flag_type", "default_value", "is_locked", "description")
EFFECTIVE_COLUMNS = ("key", "type", "value", "source", "preset_value", "override_value")
OVERRIDE_COLUMNS = ("id", "tenant_id", "plan_preset_id", "flag_key", "flag_value")


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
    print_one({**asdict(told), "tenant": row.slug}, ExplanationSchema(), as_json=as_json)


@flags.command("list")
@click.argument("tenant")
@json_option
@operator
def list_flags(tenant: str, as_json: bool) -> None:
    """List a tenant's effective flags."""
    found = evaluation.evaluate_all(find_tenant(tenant).id)
    print_list(list(found.flags.values()), EFFECTIVE, EFFECTIVE_COLUMNS, as_json=as_json)


@flags.command("presets")
@paging_options()
@json_option
@operator
def list_presets(paging: Paging, as_json: bool) -> None:
    """List the plan presets."""
    page = presets.list_presets(paging)
    print_list(page.items, PRESET, ("id", "name", "created_at", "updated_at"), as_json=as_json)


@flags.command("preset")
@click.argument("name")
@json_option
@operator
def show_preset(name: str, as_json: bool) -> None:
    """Show the flags of a plan's preset.

    set-preset accepts the JSON output.
    """
    found = _preset(name).flags
    if as_json:
        print_json(found)
    else:
        print_rows(found, FLAG_COLUMNS, as_json=False)


@flags.command("set-preset")
@click.argument("name")
@click.argument("flags", metavar="FILE", type=click.File("r", encoding="utf-8"))
@click.option("--force", is_flag=True, help="Remove flags even if overrides use them.")
@json_option
@operator
def set_preset(name: str, flags: IO[str], force: bool, as_json: bool) -> None:
    """Create a plan's preset or replace its flags.

    The flags are the JSON list in FILE (- is standard input).
    """
    given = {"name": name, "flags": _json(flags.read())}
    values = load(PlanPresetCreateSchema, given)
    known = presets.find_preset(name)
    if known is None:
        preset = presets.create_preset(**values, actor=SYSTEM_CLI)
    else:
        preset = presets.update_preset(
            known.id, {"flags": values["flags"]}, force=force, actor=SYSTEM_CLI
        )
    print_one(preset, PRESET, as_json=as_json)


@flags.command("delete-preset")
@click.argument("name")
@click.confirmation_option(prompt="Delete this plan's preset?", help="Do not ask.")
@operator
def delete_preset(name: str) -> None:
    """Delete the preset of a plan that nothing uses.

    No tenant, subscription or override may use it.
    """
    presets.delete_preset(_preset(name).id, actor=SYSTEM_CLI)


@flags.command("overrides")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@paging_options()
@json_option
@operator
def list_overrides(tenant: str | None, paging: Paging, as_json: bool) -> None:
    """List overrides, including expired ones."""
    tenant_id = find_tenant(tenant).id if tenant else None
    page = overrides.list_overrides(paging, tenant_id=tenant_id)
    print_list(page.items, OVERRIDE, OVERRIDE_COLUMNS, as_json=as_json)


@flags.command("override")
@click.argument("tenant")
@click.argument("flag_key", metavar="KEY")
@click.argument("flag_value", metavar="JSON")
@click.option("--expires-at", help="From then on the preset's value applies again (RFC 3339).")
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
    expires_at: str | None,
    carry_over: bool | None,
    as_json: bool,
) -> None:
    """Give a tenant its own value of a flag of its plan. A string needs quotes: '"dark"'."""
    row = find_tenant(tenant)
    given = {"flag_value": _json(flag_value)} | ({"expires_at": expires_at} if expires_at else {})
    if carry_over is not None:
        given["carry_over"] = carry_over
    known = _flag(evaluation.evaluate(row.id, flag_key), flag_key).override_id
    if known is None:
        values = checked(OverrideCreateSchema, {"flag_key": flag_key, **given})
        override = overrides.create_override(row.id, **values, actor=SYSTEM_CLI)
    else:
        values = {"expires_at": None, **checked(OverrideUpdateSchema, given)}
        override = overrides.update_override(known, values, is_superadmin=True, actor=SYSTEM_CLI)
    print_one(override, OVERRIDE, as_json=as_json)


@flags.command("delete-override")
@click.argument("override_id")
@click.confirmation_option(prompt="Delete this override?", help="Do not ask.")
@operator
def delete_override(override_id: str) -> None:
    """Delete an override; the preset's value applies again."""
    overrides.delete_override(override_id, actor=SYSTEM_CLI)


def _preset(name: str) -> PlanPreset:
    preset = presets.find_preset(name)
    if preset is None:
        raise click.ClickException(f"There is no preset {name}.")
    return preset


def _flag(found: FlagSet, key: str) -> EffectiveFlag:
    if key not in found.flags:
        _preset(found.plan_name)
        raise click.ClickException(f"The plan {found.plan_name} has no flag {key}.")
    return found.flags[key]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise click.UsageError(f"This is not JSON: {fault}.") from None
