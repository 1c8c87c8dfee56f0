"""The effective flags of a tenant, and the layer that decided each value.

A tenant has the flags of the preset whose name is its plan in force. An override of that preset and
flag takes precedence over the preset's value, unless it has expired or does not have the flag's
type. The flags of a suspended tenant are disabled: each has the preset's value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, and_, bindparam, func, literal, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import aliased

from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.core.json_text import Json
from app.flags.models import FeatureOverride
from app.plans.flag_types import fits
from app.plans.models import PLANS_IN_FORCE, Flag, PlanPreset

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


Ended = aliased(PlanPreset)  # of an assigned plan that has ended
_plan = PLANS_IN_FORCE.c

_in_force = or_(FeatureOverride.expires_at.is_(None), FeatureOverride.expires_at > func.now())
_is_own = FeatureOverride.plan_preset_id == PlanPreset.id
_goes_along = and_(
    FeatureOverride.carry_over,
    FeatureOverride.plan_preset_id == Ended.id,
    func.have_same_flag(Ended.flags, PlanPreset.flags, FeatureOverride.flag_key),
)
_of_preset = and_(
    FeatureOverride.tenant_id == _plan.tenant_id,
    FeatureOverride.plan_preset_id.in_([PlanPreset.id, Ended.id]),  # for the index
    or_(_is_own, _goes_along),
)
_versions = (
    select(
        func.string_agg(
            func.concat(FeatureOverride.id, ".", FeatureOverride.version),
            aggregate_order_by(literal(","), FeatureOverride.id),
        )
    )
    .where(_of_preset, _in_force)
    .scalar_subquery()
)
_fingerprint = func.md5(
    func.concat_ws(
        "|", FORMAT, _plan.tenant_id, _plan.is_active, PlanPreset.id, PlanPreset.version, _versions
    )
).label("fingerprint")


def _overrides(*conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    described = func.json_build_object(
        "id", FeatureOverride.id,
        "flag_key", FeatureOverride.flag_key,
        "flag_value", FeatureOverride.flag_value,
        "expires_at", FeatureOverride.expires_at,
        "reason", FeatureOverride.reason,
        "is_in_force", _in_force,
    )  # fmt: skip
    return (
        select(func.json_agg(aggregate_order_by(described, _is_own), type_=JSON))
        .where(_of_preset, *conditions)
        .scalar_subquery()
        .label("overrides")
    )


def _statement(name: str, *columns: Any) -> Statement:
    return Statement(
        name,
        select(*columns)
        .outerjoin_from(PLANS_IN_FORCE, PlanPreset, PlanPreset.name == _plan.plan_name)
        .outerjoin(Ended, Ended.name == _plan.ended_plan_name)
        .where(_plan.tenant_id == bindparam("tenant_id")),
    )


_state = (_fingerprint, _plan.is_active, _plan.plan_name, PlanPreset.flags)
FINGERPRINT = _statement("flags.fingerprint", _fingerprint)
EVALUATE_ALL = _statement("flags.evaluate_all", *_state, _overrides())
EVALUATE_ONE = _statement(
    "flags.evaluate_one", *_state, _overrides(FeatureOverride.flag_key == bindparam("flag_key"))
)


def fingerprint(tenant_id: UUID) -> str:
    """The fingerprint of a tenant's flags, without reading the flags; raises NotFound."""
    found: str | None = FINGERPRINT.scalar(tenant_id=tenant_id)
    if found is None:
        raise NotFound.of("tenant")
    return found


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
    return FlagSet(state.fingerprint, state.is_active, state.plan_name, flags)


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
