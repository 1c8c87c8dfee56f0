"""Feature overrides: create, find, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db import tenancy
from app.core.db.models import Change
from app.core.db.queries import flush, get_row, lock_row, lock_with, remove
from app.core.errors import Conflict, Forbidden, Invalid, value_error
from app.core.http.etags import check_precondition
from app.core.http.pagination import DEFAULT_LIMIT, Page, paginate
from app.extensions import db
from app.flags.flag_types import FlagType, type_errors
from app.flags.models import FeatureOverride, PlanPreset
from app.flags.presets import find_preset
from app.tenants.models import Tenant

MAX_OVERRIDES = 500
"""How many overrides a tenant may have, expired ones and those of other plans too."""

LOCK_TENANT = (
    select(Tenant.plan_name)
    .where(Tenant.id == bindparam("tenant_id"))
    .with_for_update(key_share=True)
)
OF_PRESET = [
    select(column).where(PlanPreset.id == FeatureOverride.plan_preset_id).scalar_subquery()
    for column in (PlanPreset.name, PlanPreset.flags)
]
COUNT = select(func.count()).where(FeatureOverride.tenant_id == bindparam("tenant_id"))


def get_override(override_id: UUID | str) -> FeatureOverride:
    """The override; raises NotFound where the scope shows none."""
    return get_row(FeatureOverride, override_id)


def list_overrides(
    *,
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
    **equal: Any,
) -> Page:
    """One page of the overrides that fit every filter given; ``equal`` are columns."""
    shown = tenancy.narrow(tenant_id)
    return paginate(FeatureOverride, equal=equal, tenant_id=shown, limit=limit, cursor=cursor)


def create_override(
    tenant_id: UUID,
    *,
    flag_key: str,
    flag_value: Any,
    plan_preset_id: UUID | None = None,
    expires_at: datetime | None = None,
    actor: Actor,
) -> FeatureOverride:
    """Give the tenant a value of its own, in the preset named or else in that of its plan.

    Raises Invalid for an unknown preset, a flag that the preset has not and a value of the wrong
    type; Conflict ``flag_key_taken`` or, at :data:`MAX_OVERRIDES`, ``too_many_overrides``.
    """
    plan_name = db.session.execute(LOCK_TENANT, {"tenant_id": tenant_id}).scalar_one()
    preset = _preset(plan_preset_id, plan_name)
    _check_value(preset, flag_key, flag_value, loc="flag_key")
    _check_room(tenant_id)
    override = FeatureOverride(
        tenant_id=tenant_id,
        plan_preset_id=preset.id,
        flag_key=flag_key,
        flag_value=flag_value,
        expires_at=expires_at,
    )
    db.session.add(override)
    taken = Conflict("The tenant has an override of this flag already.", code="flag_key_taken")
    flush({"uq_feature_overrides_tenant_id_plan_preset_id_flag_key": taken})
    audit.record_creation("override.created", override, actor=actor)
    return override


def update_override(
    override_id: UUID | str,
    values: Mapping[str, Any],
    *,
    is_superadmin: bool,
    actor: Actor,
) -> FeatureOverride:
    """Set ``flag_value`` and, where it is given, ``expires_at`` (None is never).

    Raises Forbidden for anybody but a superadmin where an expiry is given, or (``flag_locked``)
    where the preset locks the flag; Invalid for a value of the wrong type.
    """
    override, (preset_name, flags) = lock_with(FeatureOverride, override_id, *OF_PRESET)
    preset = PlanPreset(name=preset_name, flags=flags)
    if not is_superadmin:
        _check_permitted(preset, override, values)
    _check_value(preset, override.flag_key, values["flag_value"], loc="flag_value")
    check_precondition(override)
    change = override.assign(values, actor_id=actor.id)
    if change is not None:
        audit.record("override.updated", override, change, actor=actor)
    return override


def delete_override(override_id: UUID | str, *, actor: Actor) -> None:
    """Take the override away; the preset's value holds again."""
    override = lock_row(FeatureOverride, override_id)
    before = {
        name: getattr(override, name)
        for name in ("plan_preset_id", "flag_key", "flag_value", "expires_at")
    }
    audit.record("override.deleted", override, Change(before, {}), actor=actor)
    remove(override)


def _preset(preset_id: UUID | None, plan_name: str) -> PlanPreset:
    if preset_id is None:
        preset, fault = find_preset(plan_name), "the tenant's plan has no preset"
    else:
        preset, fault = db.session.get(PlanPreset, preset_id), "there is no such preset"
    if preset is None:
        value = None if preset_id is None else str(preset_id)
        raise Invalid(value_error(["body", "plan_preset_id"], fault, value))
    return preset


def _check_value(preset: PlanPreset, flag_key: str, value: Any, *, loc: str) -> None:
    flag = preset.find_flag(flag_key)
    if flag is None:
        reason = f"the preset {preset.name!r} has no such flag"
        raise Invalid(value_error(["body", loc], reason, flag_key))
    errors = list(type_errors(FlagType(flag["flag_type"]), value, ["body", "flag_value"]))
    if errors:
        raise Invalid(*errors)


def _check_permitted(
    preset: PlanPreset, override: FeatureOverride, values: Mapping[str, Any]
) -> None:
    if "expires_at" in values:
        raise Forbidden("Only a platform superadmin sets an expiry.", code="permission_denied")
    flag = preset.find_flag(override.flag_key)
    if flag is not None and flag["is_locked"]:
        raise Forbidden("The plan locks this flag.", code="flag_locked")


def _check_room(tenant_id: UUID) -> None:
    """The tenant's row is locked, so nobody else adds one meanwhile."""
    if db.session.execute(COUNT, {"tenant_id": tenant_id}).scalar_one() >= MAX_OVERRIDES:
        raise Conflict(
            f"A tenant has at most {MAX_OVERRIDES} overrides.", code="too_many_overrides"
        )
