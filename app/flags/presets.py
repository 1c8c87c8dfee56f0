"""Plan presets: create, find, change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import (
    Change,
    check_precondition,
    delete_row,
    get_row,
    insert_row,
    lock_row,
    lock_with,
    update_row,
)
from app.core.db.statements import Statement
from app.core.errors import Conflict, Invalid, error
from app.flags.models import FeatureOverride, PlanPreset
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant

READ_ONLY = ("id", "created_at", "updated_at")
"""An update may contain these fields only with their current values."""

FIND_BY_NAME = Statement(
    "plan_presets.find_by_name", select(PlanPreset).where(PlanPreset.name == bindparam("name"))
)


COUNT_USES = Statement(
    "plan_presets.count_uses",
    select(
        select(func.count())
        .where(Tenant.plan_name == bindparam("name"))
        .scalar_subquery()
        .label("tenants"),
        select(func.count())
        .where(Subscription.plan_name == bindparam("name"), Subscription.status_class != "ended")
        .scalar_subquery()
        .label("subscriptions"),
        select(func.count())
        .where(FeatureOverride.plan_preset_id == bindparam("preset_id"))
        .scalar_subquery()
        .label("overrides"),
    ),
    prepare=False,
)


IN_USE = (
    "This plan is in use by tenants: {tenants}, subscriptions that have not ended: {subscriptions},"
    " overrides: {overrides}."
)


class PlanInUse(Conflict):
    """A tenant, a subscription that has not ended, or an override has the plan."""

    code = "plan_in_use"
    detail = IN_USE.format(tenants=2, subscriptions=1, overrides=0)


class PresetNameTaken(Conflict):
    """The name belongs to another preset."""

    code = "preset_name_taken"
    detail = "Another preset has this name."


CONFLICTS = {"uq_plan_presets_name": PresetNameTaken}


def get_preset(preset_id: UUID | str) -> PlanPreset:
    """The preset; raises NotFound."""
    return get_row(PlanPreset, preset_id)


def find_preset(name: str) -> PlanPreset | None:
    """The preset with this name, or None."""
    found: PlanPreset | None = FIND_BY_NAME.first(name=name)
    return found


def list_presets(paging: Paging = FIRST_PAGE, *, name: str | None = None) -> Page:
    """One page of all presets, or only the preset with this ``name``."""
    equal = {} if name is None else {"name": name}
    return paginate(PlanPreset, paging, equal=equal)


def create_preset(name: str, flags: list[dict[str, Any]], *, actor: Actor) -> PlanPreset:
    """Create a preset; raises PresetNameTaken."""
    preset = insert_row(PlanPreset, {"name": name, "flags": flags}, conflicts=CONFLICTS)
    audit.record_creation("plan_preset.created", preset, actor=actor)
    return preset


def update_preset(preset_id: UUID | str, values: Mapping[str, Any], *, actor: Actor) -> PlanPreset:
    """Change the name or replace the flags, for all tenants of the plan.

    An override has no effect while its flag does not exist or has another type. Raises
    PresetNameTaken, and Invalid if ``values`` have another id or time than the preset.
    """
    preset, _ = lock_with(PlanPreset, preset_id)
    _check_read_only(preset, values)
    check_precondition(preset)
    written = {name: values[name] for name in ("name", "flags") if name in values}
    preset, change = update_row(PlanPreset, preset, written, conflicts=CONFLICTS)
    if change is not None:
        audit.record("plan_preset.updated", preset, change, actor=actor)
    return preset


def delete_preset(preset_id: UUID | str, *, actor: Actor) -> None:
    """Delete a preset; raises PlanInUse while a tenant, a subscription or an override uses it."""
    preset = lock_row(PlanPreset, preset_id)
    uses = COUNT_USES.first(name=preset.name, preset_id=preset.id)
    if any(uses):
        raise PlanInUse(IN_USE.format(**uses._asdict()))
    before = {"name": preset.name, "flags": preset.flags}
    audit.record("plan_preset.deleted", preset, Change(before, {}), actor=actor)
    delete_row(PlanPreset, preset)


def _check_read_only(preset: PlanPreset, values: Mapping[str, Any]) -> None:
    errors = [
        error(
            ["body", name], "extra_forbidden", "Extra inputs are not permitted", str(values[name])
        )
        for name in READ_ONLY
        if name in values and values[name] != getattr(preset, name)
    ]
    if errors:
        raise Invalid(*errors)
