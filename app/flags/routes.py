"""/v1/billing/flags."""

from __future__ import annotations

import re
from typing import cast

from flask import Response, request

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantOrOwnSchema, target_id
from app.config import current_config
from app.core import json_text
from app.core.db.pages import Page
from app.core.errors import Invalid, NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, of_contract
from app.core.json_text import Json
from app.core.validation.messages import refused
from app.flags import evaluation, flagd, ofrep, overrides, rule_preview, schemas
from app.flags.explanation import explain
from app.flags.models import FeatureOverride
from app.flags.overrides import FlagKeyTaken, FlagLocked, TooManyOverrides
from app.plans.routes import plans
from app.plans.schemas import FLAG_KEY_PATTERN

flags = Blueprint(
    "flags",
    __name__,
    url_prefix="/v1/billing/flags",
    description="A tenant's flags, and its overrides of the plan's values.",
)
BLUEPRINTS = (flags, ofrep.blp)
INCLUDES = (
    TENANT,
    schemas.EXPIRES_AT,
    schemas.CARRIES_OVER,
    schemas.GIVEN_REASON,
    schemas.PRESET,
    schemas.CREATED_BY,
    HISTORY,
)


@flags.get("")
@requires(Permission.FLAGS_READ)
@flags.arguments(TenantOrOwnSchema, location="query")
@flags.columns("key", "type", "value", "source", "preset_value", "override_value", "expires_at")
@flags.response(200, schemas.EffectiveFlagSchema(many=True))
@has_past
def list_flags(query: dict[str, Json]) -> Page:
    """List all effective flags of a tenant on one page, in the order of its preset."""
    tenant_id = target_id(query["tenant_id"])
    flags = evaluation.evaluate_all(tenant_id).flags.values()
    return Page(list(flags), None)


@flags.get("/<key>/explain")
@requires(Permission.AUDIT_READ)
@flags.arguments(schemas.FlagExplanationQuerySchema, location="query")
@flags.response(200, schemas.FlagExplanationSchema)
@flags.raises(NotFound.of("flag"))
def explain_flag(query: dict[str, Json], key: str) -> dict[str, Json]:
    """Explain a tenant's flag: preset, rules, override, expiry, lock, suspension; what decided.

    A flag that the tenant's plan does not have is `not_in_plan`; `because` names the plans that
    have it, and the plan that the tenant had before.
    """
    if not re.fullmatch(FLAG_KEY_PATTERN, key):
        raise NotFound.of("flag")
    tenant_id = target_id(query["tenant_id"])
    return explain(tenant_id, key, targeting_key=query["targeting_key"])


@flags.get("/flagd.json")
@requires(Permission.FLAGS_READ, platform_only=True)
@flags.arguments(schemas.FlagdQuerySchema, location="query")
@flags.doc(responses={"200": schemas.FLAGD_DOCUMENT})
@flags.raises(flagd.FlagdDocumentTooLarge, NotFound.of("plan_preset"))
def export_flagd(query: dict[str, Json]) -> Response:
    """Export the flags of all tenants as a flagd document, for evaluation without requests.

    The values are those of OFREP at this moment. An evaluation's context names the tenant by its id.
    """
    response = Response(json_text.dumps(flagd.document(**query)), content_type="application/json")
    response.add_etag()
    response.cache_control.private = True
    response.cache_control.no_cache = True
    return cast("Response", response.make_conditional(request))


@plans.post("/<preset_id>/flags/<key>/preview")
@requires(Permission.SUPERADMIN)
@plans.arguments(schemas.RulePreviewRequestSchema)
@plans.response(200, schemas.RulePreviewSchema)
@plans.raises(NotFound.of("flag"))
def preview_rules(body: dict[str, Json], preset_id: str, key: str) -> dict[str, Json]:
    """Preview how many tenants new rules of a flag would change; nothing is written.

    Suspended tenants, and those with an override of the flag, keep their value.
    """
    return rule_preview.preview_rules(preset_id, key, body["rules"])


@flags.get("/overrides")
@requires(Permission.FLAGS_READ)
@flags.arguments(schemas.OverrideQuerySchema, location="query")
@flags.columns("id", "tenant.slug", "flag_key", "flag_value", "expires_at", "reason")
@flags.response(200, schemas.OverrideSchema(many=True), includes=INCLUDES)
@has_past
def list_overrides(query: dict[str, Json]) -> Page:
    """List feature flag overrides."""
    return overrides.list_overrides(**query)


@flags.post("/overrides")
@requires(Permission.SUPERADMIN)
@flags.arguments(TenantOrOwnSchema, location="query")
@flags.arguments(schemas.OverrideCreateSchema)
@flags.columns("id", "flag_key", "flag_value", "expires_at", "reason")
@flags.response(201, schemas.OverrideSchema, includes=INCLUDES)
@flags.raises(FlagKeyTaken, TooManyOverrides)
def create_override(query: dict[str, Json], body: dict[str, Json]) -> FeatureOverride:
    """Create a feature flag override: another value of a flag for one tenant."""
    _check_reason(body)
    tenant_id = target_id(query["tenant_id"])
    return overrides.create_override(tenant_id, body, actor=current_actor())


@flags.get("/overrides/<override_id>")
@requires(Permission.FLAGS_READ)
@flags.response(200, schemas.OverrideSchema, includes=INCLUDES)
@has_past
def get_override(override_id: str) -> FeatureOverride:
    """Get a feature flag override."""
    return overrides.get_override(override_id)


@flags.patch("/overrides/<override_id>")
@requires(Permission.FLAGS_WRITE)
@flags.arguments(schemas.OverrideUpdateSchema)
@flags.response(200, schemas.OverrideSchema)
@flags.raises(FlagLocked)
@of_contract
def update_override(body: dict[str, Json], override_id: str) -> FeatureOverride:
    """Update a feature flag override.

    A tenant's admins can update an override unless the preset locks the flag (403 `flag_locked`).
    """
    _check_reason(body)
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


def _check_reason(body: dict[str, Json]) -> None:
    """Raise Invalid without a reason where ``OVERRIDE_REASON_REQUIRED`` is set.

    Imports are not made by hand, so they need none.
    """
    if current_config().override_reason_required and not body.get("reason", "").strip():
        raise Invalid(refused("missing", ("body", "reason"), body))


add_history(flags, "/overrides/<override_id>", "override", overrides.get_override)
