"""Feature overrides: create, find, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, bindparam, or_, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.clock import check_future
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Forbidden, Invalid, NotFound, PermissionDenied, value_error
from app.core.json_text import Json
from app.flags.models import FeatureOverride
from app.plans.flag_types import FlagType, type_errors
from app.plans.models import Flag, Flags, PlanPreset

MAX_OVERRIDES = 500  # per tenant, including expired overrides and those of other plans

EXPIRY = ("body", "expires_at")
DELETED_FIELDS = ("plan_preset_id", "flag_key", "flag_value", "expires_at", "carry_over", "reason")
PLATFORM_FIELDS = {"expires_at": "an expiry", "carry_over": "carry_over"}
"""What only a platform superadmin can set."""
HIDDEN = frozenset({"announced_expiry"})
# As the view plans_in_force. After a wait for the lock PostgreSQL reads the locked table again, but
# not the tables of a view beside it.
LOCK_PLAN_NAME = Statement(
    "tenants.lock_plan_name",
    "SELECT coalesce(a.next_plan_name, t.plan_name) FROM tenants t"
    " LEFT JOIN plan_assignments a ON a.tenant_id = t.id AND a.until <= now()"
    " WHERE t.id = :tenant_id FOR NO KEY UPDATE OF t",
)
LOCK_PRESET = Statement(
    "plan_presets.lock_for_override",
    select(PlanPreset)
    .where(or_(PlanPreset.id == bindparam("id", type_=Uuid), PlanPreset.name == bindparam("name")))
    .with_for_update(read=True, key_share=True),
)
"""So that its flags do not change until the override is there."""
PRESET_COLUMNS = [
    select(column)
    .where(PlanPreset.id == FeatureOverride.plan_preset_id)
    .scalar_subquery()
    .label(f"preset_{column.key}")
    for column in (PlanPreset.name, PlanPreset.flags)
]


class FlagKeyTaken(Conflict):
    code = "flag_key_taken"
    detail = "The tenant already has an override of this flag; change that one."


class TooManyOverrides(Conflict):
    code = "too_many_overrides"
    detail = f"A tenant can have at most {MAX_OVERRIDES} overrides; delete one first."


class FlagLocked(Forbidden):
    code = "flag_locked"
    detail = "The plan locks this flag; only the platform can change its overrides."


CONFLICTS = {"uq_feature_overrides_tenant_id_plan_preset_id_flag_key": FlagKeyTaken}


def get_override(override_id: UUID | str) -> FeatureOverride:
    return queries.get_row(FeatureOverride, override_id)


def list_overrides(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: Any
) -> Page:
    """One page of the overrides whose columns equal all values of ``equal``."""
    return paginate(FeatureOverride, paging, equal=equal, tenant_id=tenant_id)


def create_override(
    tenant_id: UUID, values: Mapping[str, Json], *, actor: Actor
) -> FeatureOverride:
    """Give the tenant its own value of a flag of a preset, by default the preset of its plan.

    Raises NotFound for an unknown tenant, and Invalid for an unknown preset, a flag that the preset lacks, a value of the wrong type,
    and an expiry in the past. Raises FlagKeyTaken, and TooManyOverrides at :data:`MAX_OVERRIDES`.
    """
    check_future(values.get("expires_at"), EXPIRY)
    plan_name = LOCK_PLAN_NAME.scalar(tenant_id=tenant_id)
    if plan_name is None:
        raise NotFound.of("tenant")
    preset = _lock_preset(values.get("plan_preset_id"), plan_name)
    flag_key, value = values["flag_key"], values["flag_value"]
    _check_value(preset.name, preset.flags, flag_key, value, field="flag_key")
    # The tenant's row is locked, so no other transaction adds an override.
    if queries.count_where(FeatureOverride, tenant_id=tenant_id) >= MAX_OVERRIDES:
        raise TooManyOverrides
    values = {**values, "tenant_id": tenant_id, "plan_preset_id": preset.id}
    override = insert_row(FeatureOverride, values, conflicts=CONFLICTS)
    audit.record_creation("override.created", override, actor=actor, hidden=HIDDEN)
    return override


def update_override(
    override_id: UUID | str, values: Mapping[str, Json], *, is_superadmin: bool, actor: Actor
) -> FeatureOverride:
    """Set ``flag_value`` and, if given, ``expires_at`` (None: no expiry), ``carry_over``, ``reason``.

    Raises Invalid for a value of the wrong type and an expiry in the past. Unless
    ``is_superadmin``, raises PermissionDenied for the fields :data:`PLATFORM_FIELDS`, and FlagLocked
    if the preset locks the flag.
    """
    check_future(values.get("expires_at"), EXPIRY)
    override, (preset_name, flags) = queries.lock_with(
        FeatureOverride, override_id, *PRESET_COLUMNS
    )
    if not is_superadmin:
        _check_permitted(flags, override.flag_key, values)
    _check_value(preset_name, flags, override.flag_key, values["flag_value"], field="flag_value")
    queries.check_precondition(override)
    override, change = queries.update_row(FeatureOverride, override, values, actor_id=actor.id)
    audit.record("override.updated", override, change, actor=actor)
    return override


def delete_override(override_id: UUID | str, *, actor: Actor) -> None:
    """Delete the override; the preset's value applies again."""
    override = queries.lock_row(FeatureOverride, override_id)
    before = {name: getattr(override, name) for name in DELETED_FIELDS}
    audit.record("override.deleted", override, Change(before, {}), actor=actor)
    queries.delete_row(FeatureOverride, override)


def _lock_preset(preset_id: UUID | None, plan_name: str) -> PlanPreset:
    name = plan_name if preset_id is None else None
    preset: PlanPreset | None = LOCK_PRESET.first(id=preset_id, name=name)
    if preset is None and preset_id is None:
        reason = f"the tenant's plan {plan_name} has no preset: create one, or assign another plan"
        raise _invalid("plan_preset_id", reason, None)
    if preset is None:
        raise _invalid("plan_preset_id", "there is no such preset", str(preset_id))
    return preset


def _find_flag(flags: Flags, flag_key: str) -> Flag | None:
    return next((flag for flag in flags if flag["flag_key"] == flag_key), None)


def _check_value(preset_name: str, flags: Flags, flag_key: str, value: Any, *, field: str) -> None:
    """Raise Invalid for a wrong type, and at ``field`` for a flag that the preset lacks."""
    flag = _find_flag(flags, flag_key)
    if flag is None:
        raise _invalid(field, f"the preset {preset_name!r} has no such flag", flag_key)
    errors = list(type_errors(FlagType(flag["flag_type"]), value, ["body", "flag_value"]))
    if errors:
        raise Invalid(*errors)


def _check_permitted(flags: Flags, flag_key: str, values: Mapping[str, object]) -> None:
    for name, shown in PLATFORM_FIELDS.items():
        if name in values:
            raise PermissionDenied(f"Only a platform superadmin can set {shown}.")
    if (_find_flag(flags, flag_key) or {}).get("is_locked"):
        raise FlagLocked


def _invalid(field: str, fault: str, value: str | None) -> Invalid:
    return Invalid(value_error(["body", field], fault, value))
