"""/v1/billing/plans, /v1/billing/prices and /v1/tenants/{tenant_id}/plan."""

from __future__ import annotations

from app.audit.includes import HISTORY
from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past
from app.core.json_text import Json
from app.plans import assignments, decision, presets, preview, schemas
from app.plans import prices as plan_prices
from app.plans.models import PlanAssignment, PlanPreset
from app.plans.presets import FlagInUse, PlanInUse, PresetNameTaken
from app.plans.price_schemas import (
    DryRunSchema,
    PlanPriceChangeSchema,
    PlanPriceQuerySchema,
    PlanPriceSchema,
    PlanPriceSetSchema,
)

tenant_plans = Blueprint(
    "tenant_plans",
    __name__,
    url_prefix="/v1/tenants",
    description="What decides a tenant's plan, and the plans that the platform assigns.",
)
plans = Blueprint(
    "plans",
    __name__,
    url_prefix="/v1/billing/plans",
    description="Plan presets: the flags that each plan gives its tenants.",
)
prices = Blueprint(
    "billing_prices",
    __name__,
    url_prefix="/v1/billing/prices",
    description="The prices of billing providers, and the plan that each gives.",
)
BLUEPRINTS = (tenant_plans, plans, prices)
INCLUDES = (HISTORY,)


@plans.get("")
@requires(Permission.FLAGS_READ)
@plans.arguments(schemas.PlanPresetQuerySchema, location="query")
@plans.columns("id", "name", "display_name", "created_at")
@plans.response(200, schemas.PlanPresetSchema(many=True), includes=INCLUDES)
@has_past
def list_plans(query: dict[str, Json]) -> Page:
    """List plan presets."""
    return presets.list_presets(**query)


@plans.post("")
@requires(Permission.SUPERADMIN)
@plans.arguments(schemas.PlanPresetCreateSchema)
@plans.response(201, schemas.PlanPresetSchema)
@plans.raises(PresetNameTaken)
def create_plan(body: dict[str, Json]) -> PlanPreset:
    """Create a plan preset; it applies to the tenants whose `plan_name` is its name.

    Subscriptions that name it already take effect: a job brings their tenants after.
    """
    return presets.create_preset(**body, actor=current_actor())


@plans.get("/<preset_id>")
@requires(Permission.FLAGS_READ)
@plans.response(200, schemas.PlanPresetSchema, includes=INCLUDES)
@has_past
def get_plan(preset_id: str) -> PlanPreset:
    """Get a plan preset."""
    return presets.get_preset(preset_id)


@plans.patch("/<preset_id>")
@requires(Permission.SUPERADMIN)
@plans.arguments(schemas.PlanPresetForceSchema, location="query")
@plans.arguments(schemas.PlanPresetUpdateSchema)
@plans.response(200, schemas.PlanPresetSchema)
@plans.raises(PresetNameTaken, PlanInUse, FlagInUse)
def update_plan(query: dict[str, Json], body: dict[str, Json], preset_id: str) -> PlanPreset:
    """Update a plan preset: rename it or replace its flags, for all tenants of the plan.

    A preset can be sent as it was read. The `name` cannot change while a tenant or a
    subscription that has not ended has the plan (409 `plan_in_use`); `display_name` can. A flag that
    overrides use can be removed only with `?force=true`, and cannot get another type (409
    `flag_in_use`).
    """
    return presets.update_preset(preset_id, body, **query, actor=current_actor())


@plans.post("/<preset_id>/preview")
@requires(Permission.SUPERADMIN)
@plans.arguments(schemas.PlanPresetUpdateSchema)
@plans.response(200, schemas.PlanPreviewSchema)
def preview_plan(body: dict[str, Json], preset_id: str) -> dict[str, Json]:
    """Preview what an update of a plan preset would change; nothing is written.

    It takes what the update takes. Limits are compared with what tenants use now.
    """
    return preview.preview(preset_id, body)


@plans.delete("/<preset_id>")
@requires(Permission.SUPERADMIN)
@plans.response(204)
@plans.raises(PlanInUse)
def delete_plan(preset_id: str) -> None:
    """Delete an unused plan preset: no tenant, override or running subscription has it."""
    presets.delete_preset(preset_id, actor=current_actor())


add_history(plans, "/<preset_id>", "plan_preset", presets.get_preset, platform_only=True)


@tenant_plans.get("/<tenant_id>/plan")
@requires(Permission.BILLING_READ)
@tenant_plans.response(200, schemas.PlanDecisionSchema)
def explain_plan(tenant_id: str) -> dict[str, object]:
    """Explain a tenant's plan: what decides it, and why not the other candidates."""
    return decision.explain(tenant_id)


@tenant_plans.put("/<tenant_id>/plan")
@requires(Permission.SUPERADMIN)
@tenant_plans.arguments(schemas.PlanAssignmentSchema)
@tenant_plans.response(200, schemas.PlanDecisionSchema)
def assign_plan(body: dict[str, Json], tenant_id: str) -> dict[str, object]:
    """Assign a plan to a tenant, for a trial, a pilot, a comped or an internal tenant.

    It takes precedence over every subscription until it ends or is deleted. Assigning it again
    changes or extends it. `If-Match` names the tenant's version.
    """
    assignments.assign(tenant_id, **body, actor=current_actor())
    return decision.explain(tenant_id)


@tenant_plans.delete("/<tenant_id>/plan")
@requires(Permission.SUPERADMIN)
@tenant_plans.response(204)
@tenant_plans.raises(NotFound.of(PlanAssignment))
def withdraw_plan(tenant_id: str) -> None:
    """Delete a tenant's assigned plan; its subscription, or the default plan, decides again.

    `If-Match` names the tenant's version.
    """
    assignments.withdraw(tenant_id, actor=current_actor())


@prices.get("")
@requires(Permission.BILLING_READ, platform_only=True)
@prices.arguments(PlanPriceQuerySchema, location="query")
@prices.columns("id", "provider", "price_id", "lookup_key", "plan_name", "limit_key", "sort_order")
@prices.response(200, PlanPriceSchema(many=True))
def list_prices(query: dict[str, Json]) -> Page:
    """List the prices of billing providers, and the plan that each gives."""
    return plan_prices.list_prices(**query)


@prices.put("")
@requires(Permission.SUPERADMIN)
@prices.arguments(DryRunSchema, location="query")
@prices.arguments(PlanPriceSetSchema)
@prices.response(200, PlanPriceChangeSchema)
def set_price(query: dict[str, Json], body: dict[str, Json]) -> dict[str, Json]:
    """Set the plan that a price gives, and the limit that gets its quantity.

    It shows which subscriptions change: a job gives them the plan within a minute. With
    `?dry_run=true` nothing is written.
    """
    return plan_prices.set_price(body, **query, actor=current_actor())


@prices.delete("/<plan_price_id>")
@requires(Permission.SUPERADMIN)
@prices.response(204)
def delete_price(plan_price_id: str) -> None:
    """Delete a price; a job gives its subscriptions the plan that they have without it.

    For a subscription without a mapped price that is its price's lookup key, else the price's id.
    """
    plan_prices.delete_price(plan_price_id, actor=current_actor())
