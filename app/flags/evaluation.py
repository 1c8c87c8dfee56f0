"""The effective flags of a tenant, and the layer that decided each value.

A tenant has the flags of the preset whose name is its plan in force. An override of that preset and
flag takes precedence over the preset's value, unless it has expired or does not have the flag's
type. The flags of a suspended tenant are disabled: each has the preset's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.core.json_text import Json
from app.plans.flag_types import fits
from app.plans.models import Flag

# Part of every fingerprint. Increase it in a release that answers differently for the same rows.
FORMAT = 1


class Layer(StrEnum):
    """What decided a flag's value, which is the preset's but for ``override``.

    A flag that the plan does not have (``not_in_plan``) has none.
    """

    PRESET = "preset"
    OVERRIDE = "override"
    OVERRIDE_EXPIRED = "override_expired"
    OVERRIDE_OF_WRONG_TYPE = "override_of_wrong_type"
    TENANT_SUSPENDED = "tenant_suspended"
    NOT_IN_PLAN = "not_in_plan"


@dataclass(frozen=True, slots=True)
class EffectiveFlag:
    """One flag of one tenant. Without an override, the override's fields are None."""

    key: str
    type: str
    value: Json
    layer: Layer
    preset_value: Json = None
    is_locked: bool = False
    override_id: str | None = None
    override_value: Json = None
    expires_at: datetime | None = None
    reason: str = ""

    @property
    def source(self) -> str:
        return "override" if self.layer is Layer.OVERRIDE else "preset"


@dataclass(frozen=True, slots=True)
class FlagSet:
    """A tenant's flags at one moment; equal fingerprints mean the same tenant and equal flags."""

    fingerprint: str
    is_active: bool
    plan_name: str
    flags: dict[str, EffectiveFlag]
    grant_key: bytes | None = None  # None: no event has a position yet


IN_FORCE = "(o.expires_at IS NULL OR o.expires_at > now())"
OVERRIDES = """
    FROM feature_overrides o
    WHERE o.tenant_id = plan.tenant_id AND o.plan_preset_id IN (preset.id, ended.id)
        AND (o.plan_preset_id = preset.id OR o.carry_over AND o.plan_preset_id = ended.id
            AND have_same_flag(ended.flags, preset.flags, o.flag_key))
"""
"""Those of the plan's preset, and those that carry over from an assigned plan that has ended."""
FINGERPRINT_COLUMN = f"""
    md5(concat_ws('|', {FORMAT}, plan.tenant_id, plan.is_active, preset.id, preset.version, (
        SELECT string_agg(concat(o.id, '.', o.version), ',' ORDER BY o.id) {OVERRIDES} AND {IN_FORCE}
    ))) AS fingerprint
"""
GRANT_KEY = "(SELECT cursor_key FROM event_feed) AS grant_key"
FLAG_COLUMNS = f"""
    {FINGERPRINT_COLUMN}, plan.is_active, plan.plan_name, preset.flags, {GRANT_KEY}, (
        SELECT json_agg(
            json_build_object(
                'id', o.id, 'flag_key', o.flag_key, 'flag_value', o.flag_value,
                'expires_at', o.expires_at, 'reason', o.reason, 'is_in_force', {IN_FORCE}
            ) ORDER BY o.plan_preset_id = preset.id
        ) {OVERRIDES} AND %s
    ) AS overrides
"""
FROM_PLANS = """
    FROM plans_in_force plan
    LEFT JOIN plan_presets preset ON preset.name = plan.plan_name
    LEFT JOIN plan_presets ended ON ended.name = plan.ended_plan_name
"""


def _statement(name: str, columns: str) -> Statement:
    return Statement(name, f"SELECT {columns} {FROM_PLANS} WHERE plan.tenant_id = :tenant_id")


FINGERPRINT = _statement("flags.fingerprint", FINGERPRINT_COLUMN)
FINGERPRINTS = Statement(
    "flags.fingerprints",
    f"SELECT plan.tenant_id, {FINGERPRINT_COLUMN} {FROM_PLANS}"
    " WHERE plan.tenant_id = ANY (CAST(:tenant_ids AS uuid[]))",
    prepare=False,
)
EVALUATE_ALL = _statement("flags.evaluate_all", FLAG_COLUMNS % "true")
EVALUATE_ONE = _statement("flags.evaluate_one", FLAG_COLUMNS % "o.flag_key = :flag_key")


def fingerprint(tenant_id: UUID) -> str:
    """The fingerprint of a tenant's flags, without reading the flags; raises NotFound."""
    found: str | None = FINGERPRINT.scalar(tenant_id=tenant_id)
    if found is None:
        raise NotFound.of("tenant")
    return found


def fingerprints(tenant_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The fingerprints of several tenants; a tenant that does not exist is absent."""
    found = FINGERPRINTS.all(tenant_ids=list(map(str, tenant_ids)))
    return {row.tenant_id: row.fingerprint for row in found}


def evaluate_all(tenant_id: UUID) -> FlagSet:
    """All flags of a tenant, in the preset's order, by one statement; raises NotFound."""
    return _flag_set(EVALUATE_ALL.first(tenant_id=tenant_id))


def evaluate(tenant_id: UUID, flag_key: str) -> FlagSet:
    """Only this flag of a tenant; empty if the tenant's plan lacks it. Raises NotFound."""
    return _flag_set(EVALUATE_ONE.first(tenant_id=tenant_id, flag_key=flag_key), flag_key)


def _flag_set(state: Any, flag_key: str | None = None) -> FlagSet:
    if state is None:
        raise NotFound.of("tenant")
    # The preset's own overrides are last, so they replace one that carries over.
    overrides = {override["flag_key"]: override for override in state.overrides or ()}
    flags = {
        flag["flag_key"]: _effective(flag, overrides.get(flag["flag_key"]), state.is_active)
        for flag in state.flags or ()
        if flag_key is None or flag["flag_key"] == flag_key
    }
    return FlagSet(state.fingerprint, state.is_active, state.plan_name, flags, state.grant_key)


def _effective(flag: Flag, override: Mapping[str, Json] | None, is_active: bool) -> EffectiveFlag:
    layer = _layer(flag, override, is_active)
    known = override or {}
    expires_at = known.get("expires_at")  # as PostgreSQL has written it into JSON
    return EffectiveFlag(
        key=flag["flag_key"],
        type=flag["flag_type"],
        value=known["flag_value"] if layer is Layer.OVERRIDE else flag["default_value"],
        layer=layer,
        preset_value=flag["default_value"],
        is_locked=flag["is_locked"],
        override_id=known.get("id"),
        override_value=known.get("flag_value"),
        expires_at=expires_at and datetime.fromisoformat(expires_at),
        reason=known.get("reason", ""),
    )


def _layer(flag: Flag, override: Mapping[str, object] | None, is_active: bool) -> Layer:
    if not is_active:
        return Layer.TENANT_SUSPENDED
    if override is None:
        return Layer.PRESET
    if not override["is_in_force"]:
        return Layer.OVERRIDE_EXPIRED
    if not fits(flag["flag_type"], override["flag_value"]):
        return Layer.OVERRIDE_OF_WRONG_TYPE
    return Layer.OVERRIDE
