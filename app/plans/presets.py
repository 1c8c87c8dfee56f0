"""Plan presets: create, find, change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, bindparam, func, select, union

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid
from app.core.jobs.queues import JOBS
from app.core.json_text import Json
from app.core.validation.messages import refused
from app.flags.models import FeatureOverride
from app.plans.models import Flags, PlanAssignment, PlanPreset
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant

FOLLOW_PLANS = "app.plans.jobs.follow_plans"

READ_ONLY = ("id", "created_at", "updated_at")
"""An update may contain these fields only with their current values."""
WRITABLE = ("name", "flags", "display_name")
INTERNAL = frozenset({"has_new_name"})
FLAG_FIELDS = (
    *("flag_key", "flag_type", "default_value", "description", "is_locked"),
    *("metering", "rules"),  # where a flag has them
)
FLAGS_SHOWN = 20

_by_flag = (
    select(FeatureOverride.flag_key, func.count().label("overrides"))
    .where(FeatureOverride.plan_preset_id == bindparam("preset_id"))
    .group_by(FeatureOverride.flag_key)
    .subquery()
)
_tenants = union(
    select(Tenant.id).where(Tenant.plan_name == bindparam("name")),
    select(PlanAssignment.tenant_id).where(PlanAssignment.next_plan_name == bindparam("name")),
).subquery()
COUNT_USES = Statement(
    "plan_presets.count_uses",
    select(
        select(func.count()).select_from(_tenants).scalar_subquery().label("tenants"),
        select(func.count())
        .where(Subscription.plan_name == bindparam("name"), Subscription.status_class != "ended")
        .scalar_subquery()
        .label("subscriptions"),
        select(func.json_object_agg(_by_flag.c.flag_key, _by_flag.c.overrides, type_=JSON))
        .scalar_subquery()
        .label("overrides"),
    ),
    prepare=False,
)
"""How many tenants, living subscriptions, and overrides of each flag use a preset.

A tenant whose assigned plan ends counts for its next plan too.
"""
LOCK_NAME = Statement(
    "plan_presets.lock_new_name",
    "SELECT pg_advisory_xact_lock(hashtextextended(concat('plan ', CAST(:name AS text)), 0))",
)
"""Wait for the transactions that have found no preset of this name (``follow_plan``)."""

IN_USE = (
    "This plan is in use by tenants: {tenants}, subscriptions that have not ended: {subscriptions},"
    " overrides: {overrides}. First give the tenants and subscriptions another plan, and delete the"
    " overrides."
)
REMOVED_IN_USE = (
    "Overrides use flags that would be removed: {flags}. Set force (?force=true, --force) to remove"
    " them all the same; the overrides then have no effect."
)
RETYPED_IN_USE = (
    "Overrides use flags that would get another type: {flags}. Delete these overrides first; force"
    " does not help."
)


class PlanInUse(Conflict):
    code = "plan_in_use"
    detail = IN_USE.format(tenants=2, subscriptions=1, overrides=0)


class FlagInUse(Conflict):
    code = "flag_in_use"
    detail = REMOVED_IN_USE.format(flags="seats (3)")


class PresetNameTaken(Conflict):
    code = "preset_name_taken"
    detail = "Another preset has this name; update that one, or choose another name."


CONFLICTS = {"uq_plan_presets_name": PresetNameTaken}


def get_preset(preset_id: UUID | str) -> PlanPreset:
    return queries.get_row(PlanPreset, preset_id)


def find_preset(name: str) -> PlanPreset | None:
    return queries.find_row(PlanPreset, name=name)


def list_presets(paging: Paging = FIRST_PAGE, *, name: str | None = None) -> Page:
    """One page of all presets, or only the preset with this ``name``."""
    return paginate(PlanPreset, paging, equal={} if name is None else {"name": name})


def create_preset(
    name: str, flags: list[dict[str, object]], *, display_name: str = "", actor: Actor
) -> PlanPreset:
    """Create a preset; raises PresetNameTaken.

    A flag is locked unless its ``is_locked`` is given. A job gives the plan to the tenants whose
    current subscription names it already.
    """
    LOCK_NAME.execute(name=name)
    values = {"name": name, "flags": complete(flags, ()), "display_name": display_name}
    preset = insert_row(PlanPreset, {**values, "has_new_name": True}, conflicts=CONFLICTS)
    audit.record_creation("plan_preset.created", preset, actor=actor, hidden=INTERNAL)
    JOBS[FOLLOW_PLANS].push()
    return preset


def update_preset(
    preset_id: UUID | str, values: Mapping[str, Json], *, force: bool = False, actor: Actor
) -> PlanPreset:
    """Change the names or replace the flags, for all tenants of the plan.

    A flag that exists keeps its ``is_locked`` where none is given. With ``force`` flags that
    overrides use can be removed; such an override has no effect. Raises PlanInUse for a new name
    while a tenant or a subscription that has not ended has the plan, FlagInUse, PresetNameTaken,
    and Invalid if ``values`` have another id or time than the preset.
    """
    preset, _ = queries.lock_with(PlanPreset, preset_id)
    written = writable_fields(preset, values)
    queries.check_precondition(preset)
    removed, retyped = lost_flags(preset.flags, written.get("flags", preset.flags))
    also: dict[str, object] = {}
    if written.get("name", preset.name) != preset.name:
        LOCK_NAME.execute(name=written["name"])
        also = {"has_new_name": True}
        JOBS[FOLLOW_PLANS].push()
    uses = COUNT_USES.one(name=preset.name, preset_id=preset.id)
    if also and (uses.tenants or uses.subscriptions):
        raise _plan_in_use(uses)
    _check_flags_free(uses, removed=() if force else removed, retyped=retyped)
    preset, change = queries.update_row(PlanPreset, preset, written, also=also, conflicts=CONFLICTS)
    audit.record("plan_preset.updated", preset, change, actor=actor, hidden=INTERNAL)
    return preset


def writable_fields(preset: PlanPreset, values: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of an update that can change, with complete flags.

    Raises Invalid if ``values`` have another id or time than the preset.
    """
    errors = [
        refused("extra_forbidden", ("body", name), str(values[name]))
        for name in READ_ONLY
        if name in values and values[name] != getattr(preset, name)
    ]
    if errors:
        raise Invalid(*errors)
    written = {name: values[name] for name in WRITABLE if name in values}
    if "flags" in written:
        written["flags"] = complete(written["flags"], preset.flags)
    return written


def complete(flags: Flags, stored: Flags) -> list[dict[str, object]]:
    """The flags with ``is_locked``: by default as it is stored, and true for a new flag.

    An empty list of rules is left out.
    """
    known = {flag["flag_key"]: flag["is_locked"] for flag in stored}
    return [
        {
            name: flag[name]
            for name in FLAG_FIELDS
            if name in flag and (name != "rules" or flag["rules"])
        }
        for flag in ({"is_locked": known.get(one["flag_key"], True), **one} for one in flags)
    ]


def lost_flags(old: Flags, new: Flags) -> tuple[list[str], list[str]]:
    """The keys of the flags that ``new`` lacks, and of those that have another type there."""
    types = {flag["flag_key"]: flag["flag_type"] for flag in new}
    removed = [flag["flag_key"] for flag in old if flag["flag_key"] not in types]
    retyped = [
        flag["flag_key"]
        for flag in old
        if types.get(flag["flag_key"], flag["flag_type"]) != flag["flag_type"]
    ]
    return removed, retyped


def delete_preset(preset_id: UUID | str, *, actor: Actor) -> None:
    """Delete a preset; raises PlanInUse while a tenant, a subscription or an override uses it."""
    preset = queries.lock_row(PlanPreset, preset_id)
    uses = COUNT_USES.one(name=preset.name, preset_id=preset.id)
    if any(uses):
        raise _plan_in_use(uses)
    before = {name: getattr(preset, name) for name in WRITABLE}
    audit.record("plan_preset.deleted", preset, Change(before, {}), actor=actor, hidden=INTERNAL)
    queries.delete_row(PlanPreset, preset)


def _plan_in_use(uses: Any) -> PlanInUse:
    count = sum((uses.overrides or {}).values())
    return PlanInUse(
        IN_USE.format(tenants=uses.tenants, subscriptions=uses.subscriptions, overrides=count)
    )


def _check_flags_free(uses: Any, *, removed: Collection[str], retyped: Collection[str]) -> None:
    overrides = uses.overrides or {}
    found = []
    for sentence, flag_keys in ((RETYPED_IN_USE, retyped), (REMOVED_IN_USE, removed)):
        used = [f"{key} ({overrides[key]})" for key in flag_keys if key in overrides]
        if used:
            found.append(sentence.format(flags=", ".join(used[:FLAGS_SHOWN])))
    if found:
        raise FlagInUse(" ".join(found))
