"""/v1/billing/plans and /v1/billing/flags."""

from __future__ import annotations

import re

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import target_id
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import of_contract
from app.core.json_text import Json
from app.flags import evaluation, ofrep, overrides, presets, preview
from app.flags.explanation import explain
from app.flags.models import FeatureOverride, PlanPreset
from app.flags.overrides import FlagKeyTaken, FlagLocked, TooManyOverrides
from app.flags.preset_schemas import (
    FLAG_KEY_PATTERN,
    PlanPresetCreateSchema,
    PlanPresetForceSchema,
    PlanPresetQuerySchema,
    PlanPresetSchema,
    PlanPresetUpdateSchema,
    PlanPreviewSchema,
)
from app.flags.presets import FlagInUse, PlanInUse, PresetNameTaken
from app.flags.schemas import (
    CARRIES_OVER,
    CREATED_BY,
    EXPIRES_AT,
    PRESET,
    EffectiveFlagSchema,
    FlagExplanationSchema,
    FlagTenantQuerySchema,
    OverrideCreateSchema,
    OverrideQuerySchema,
    OverrideSchema,
    OverrideUpdateSchema,
)

plans = Blueprint(
    "plans",
    __name__,
    url_prefix="/v1/billing/plans",
    description="Plan presets: the flags that each plan gives its tenants.",
)
flags = Blueprint(
    "flags",
    __name__,
    url_prefix="/v1/billing/flags",
    description="A tenant's flags, and its overrides of the plan's values.",
)
BLUEPRINTS = (plans, flags, ofrep.blp)
PLAN_INCLUDES = (HISTORY,)
INCLUDES = (TENANT, EXPIRES_AT, CARRIES_OVER, PRESET, CREATED_BY, HISTORY)


@plans.get("")
@requires(Permission.FLAGS_READ)
@plans.arguments(PlanPresetQuerySchema, location="query")
@plans.columns("id", "name", "display_name", "created_at")
@plans.response(200, PlanPresetSchema(many=True), includes=PLAN_INCLUDES)
def list_plans(query: dict[str, Json]) -> Page:
    """List plan presets."""
    return presets.list_presets(**query)


@plans.post("")
@requires(Permission.SUPERADMIN)
@plans.arguments(PlanPresetCreateSchema)
@plans.response(201, PlanPresetSchema)
@plans.raises(PresetNameTaken)
def create_plan(body: dict[str, Json]) -> PlanPreset:
    """Create a plan preset; it applies to the tenants whose `plan_name` is its name.

    Subscriptions that name it already take effect: a job brings their tenants after.
    """
    return presets.create_preset(**body, actor=current_actor())


@plans.get("/<preset_id>")
@requires(Permission.FLAGS_READ)
@plans.response(200, PlanPresetSchema, includes=PLAN_INCLUDES)
def get_plan(preset_id: str) -> PlanPreset:
    """Get a plan preset."""
    return presets.get_preset(preset_id)


@plans.patch("/<preset_id>")
@requires(Permission.SUPERADMIN)
@plans.arguments(PlanPresetForceSchema, location="query")
@plans.arguments(PlanPresetUpdateSchema)
@plans.response(200, PlanPresetSchema)
@plans.raises(PresetNameTaken, PlanInUse, FlagInUse)
def update_plan(query: dict[str, Json], body: dict[str, Json], preset_id: str) -> PlanPreset:
    """Update a plan preset: rename it or replace its flags, for all tenants of the plan.

    The body may be a preset as it was read. The `name` cannot change while a tenant or a
    subscription that has not ended has the plan (409 `plan_in_use`); `display_name` can. A flag that
    overrides use can be removed only with `?force=true`, and cannot get another type (409
    `flag_in_use`).
    """
    return presets.update_preset(preset_id, body, **query, actor=current_actor())


@plans.post("/<preset_id>/preview")
@requires(Permission.SUPERADMIN)
@plans.arguments(PlanPresetUpdateSchema)
@plans.response(200, PlanPreviewSchema)
def preview_plan(body: dict[str, Json], preset_id: str) -> dict[str, Json]:
    """Tell what an update of a plan preset would change; nothing is written.

    The body is that of the update. Limits are compared with what tenants use now.
    """
    return preview.preview(preset_id, body)


@plans.delete("/<preset_id>")
@requires(Permission.SUPERADMIN)
@plans.response(204)
@plans.raises(PlanInUse)
def delete_plan(preset_id: str) -> None:
    """Delete a plan preset that no tenant, override or subscription that has not ended uses."""
    presets.delete_preset(preset_id, actor=current_actor())


add_history(plans, "/<preset_id>", "plan_preset", presets.get_preset, platform_only=True)


@flags.get("")
@requires(Permission.FLAGS_READ)
@flags.arguments(FlagTenantQuerySchema, location="query")
@flags.columns("key", "type", "value", "source", "preset_value", "override_value", "expires_at")
@flags.response(200, EffectiveFlagSchema(many=True))
def list_flags(query: dict[str, Json]) -> Page:
    """List all effective flags of a tenant on one page, in the order of its preset."""
    tenant_id = target_id(query["tenant_id"])
    flags = evaluation.evaluate_all(tenant_id).flags.values()
    return Page(list(flags), None)


@flags.get("/<key>/explain")
@requires(Permission.AUDIT_READ)
@flags.arguments(FlagTenantQuerySchema, location="query")
@flags.response(200, FlagExplanationSchema)
@flags.raises(NotFound.of("flag"))
def explain_flag(query: dict[str, Json], key: str) -> dict[str, Json]:
    """Explain a tenant's flag: preset, override, expiry, lock and suspension, and what decided.

    A flag that the tenant's plan does not have is `not_in_plan`; `because` names the plans that
    have it, and the plan that the tenant had before.
    """
    if not re.fullmatch(FLAG_KEY_PATTERN, key):
        raise NotFound.of("flag")
    tenant_id = target_id(query["tenant_id"])
    return explain(tenant_id, key)


@flags.get("/overrides")
@requires(Permission.FLAGS_READ)
@flags.arguments(OverrideQuerySchema, location="query")
@flags.columns("id", "tenant.slug", "flag_key", "flag_value", "expires_at")
@flags.response(200, OverrideSchema(many=True), includes=INCLUDES)
def list_overrides(query: dict[str, Json]) -> Page:
    """List feature flag overrides."""
    return overrides.list_overrides(**query)


@flags.post("/overrides")
@requires(Permission.SUPERADMIN)
@flags.arguments(FlagTenantQuerySchema, location="query")
@flags.arguments(OverrideCreateSchema)
@flags.columns("id", "flag_key", "flag_value", "expires_at")
@flags.response(201, OverrideSchema, includes=INCLUDES)
@flags.raises(FlagKeyTaken, TooManyOverrides)
def create_override(query: dict[str, Json], body: dict[str, Json]) -> FeatureOverride:
    """Create a feature flag override: another value of a flag for one tenant."""
    tenant_id = target_id(query["tenant_id"])
    return overrides.create_override(tenant_id, **body, actor=current_actor())


@flags.get("/overrides/<override_id>")
@requires(Permission.FLAGS_READ)
@flags.response(200, OverrideSchema, includes=INCLUDES)
def get_override(override_id: str) -> FeatureOverride:
    """Get a feature flag override."""
    return overrides.get_override(override_id)


@flags.patch("/overrides/<override_id>")
@requires(Permission.FLAGS_WRITE)
@flags.arguments(OverrideUpdateSchema)
@flags.response(200, OverrideSchema)
@flags.raises(FlagLocked)
@of_contract
def update_override(body: dict[str, Json], override_id: str) -> FeatureOverride:
    """Update a feature flag override.

    A tenant's admins can update an override unless the preset locks the flag (403 `flag_locked`).
    """
    is_superadmin = current_principal().has(Permission.SUPERADMIN)
    return overrides.update_override(
        override_id, body, is_superadmin=is_superadmin, actor=current_actor()
    )


@flags.delete("/overrides/<override_id>")
@requires(Permission.SUPERADMIN)
@flags.response(204)
def delete_override(override_id: str) -> None:
    """Delete a feature flag override; the preset's value applies again."""
    overrides.delete_override(override_id, actor=current_actor())


add_history(flags, "/overrides/<override_id>", "override", overrides.get_override)
