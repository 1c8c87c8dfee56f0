"""What an update of a plan preset would change, before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Boolean, Text, bindparam, text

from app.core.db.queries import check_precondition, get_row
from app.core.db.statements import Statement
from app.core.json_text import differs
from app.flags.flag_types import UNLIMITED, FlagType, Period
from app.flags.models import PlanPreset
from app.flags.presets import COUNT_USES, lost_flags, writable_fields

# Tenants without an override in force whose count of the current period is above the new limit.
# The seats are counted from the memberships.
FIND_ABOVE = Statement(
    "plan_presets.find_tenants_above",
    text(
        "SELECT l.feature, count(DISTINCT t.id) AS tenants, max(u.used) AS most_used"
        " FROM unnest(CAST(:features AS text[]), CAST(:limits AS bigint[]),"
        " CAST(:starts_anew AS boolean[])) AS l (feature, most, starts_anew)"
        " JOIN tenants t ON t.plan_name = :name"
        " CROSS JOIN LATERAL ("
        " SELECT c.used FROM usage_counters c WHERE l.feature <> 'seats'"
        " AND c.tenant_id = t.id AND c.feature = l.feature AND c.period_start <= now()"
        " AND CASE WHEN l.starts_anew THEN c.period_end > now() ELSE c.period_end IS NULL END"
        " UNION ALL SELECT count_seats(t.id) WHERE l.feature = 'seats') u"
        " WHERE u.used > l.most AND NOT EXISTS (SELECT FROM feature_overrides o"
        " WHERE o.tenant_id = t.id AND o.plan_preset_id = :preset_id AND o.flag_key = l.feature"
        " AND (o.expires_at IS NULL OR o.expires_at > now()))"
        " GROUP BY l.feature ORDER BY l.feature"
    ).bindparams(
        bindparam("features", type_=ARRAY(Text)),
        bindparam("limits", type_=ARRAY(BigInteger)),
        bindparam("starts_anew", type_=ARRAY(Boolean)),
    ),
    prepare=False,
)


@dataclass(frozen=True)
class FlagChange:
    """A flag that an update would change, before and after."""

    flag_key: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class LostOverrides:
    """How many overrides would have no effect, because their flag goes or has another type."""

    flag_key: str
    overrides: int


@dataclass(frozen=True)
class LimitBelowUsage:
    """A limit that would be below what tenants use, and how much one of them uses at most."""

    feature: str
    limit: int
    tenants: int
    most_used: int


@dataclass(frozen=True)
class Preview:
    """What an update would change."""

    name: str
    display_name: str
    tenants: int
    flags_added: Sequence[Mapping[str, Any]]
    flags_removed: Sequence[Mapping[str, Any]]
    flags_changed: Sequence[FlagChange]
    overrides_lost: Sequence[LostOverrides]
    limits_below_usage: Sequence[LimitBelowUsage]


def preview(preset_id: UUID | str, values: Mapping[str, Any]) -> Preview:
    """What :func:`app.flags.presets.update_preset` would change; nothing is written.

    Raises NotFound, and Invalid as the update does.
    """
    preset = get_row(PlanPreset, preset_id)
    written = writable_fields(preset, values)
    check_precondition(preset)
    old = {flag["flag_key"]: flag for flag in preset.flags}
    new = {flag["flag_key"]: flag for flag in written.get("flags", preset.flags)}
    uses = COUNT_USES.first(name=preset.name, preset_id=preset.id)
    removed, retyped = lost_flags(preset.flags, list(new.values()))
    overrides = uses.overrides or {}
    return Preview(
        name=written.get("name", preset.name),
        display_name=written.get("display_name", preset.display_name),
        tenants=uses.tenants,
        flags_added=[flag for key, flag in new.items() if key not in old],
        flags_removed=[old[key] for key in removed],
        flags_changed=[
            FlagChange(key, old[key], flag)
            for key, flag in new.items()
            if key in old and differs(old[key], flag)
        ],
        overrides_lost=[
            LostOverrides(key, overrides[key]) for key in [*removed, *retyped] if key in overrides
        ],
        limits_below_usage=_limits_below_usage(preset, list(_lowered(old, new))),
    )


def _lowered(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The limits of ``new`` that are lower than before, or were no limits before."""
    for key, flag in new.items():
        limit, before = flag["default_value"], old.get(key, {})
        if flag["flag_type"] != FlagType.LIMIT or limit == UNLIMITED:
            continue
        was_limit = before.get("flag_type") == FlagType.LIMIT
        if not was_limit or before["default_value"] == UNLIMITED or limit < before["default_value"]:
            yield flag


def _limits_below_usage(
    preset: PlanPreset, lowered: Sequence[Mapping[str, Any]]
) -> list[LimitBelowUsage]:
    if not lowered:
        return []
    limits = {flag["flag_key"]: flag["default_value"] for flag in lowered}
    found = FIND_ABOVE.all(
        name=preset.name,
        preset_id=preset.id,
        features=list(limits),
        limits=list(limits.values()),
        starts_anew=[flag["metering"]["period"] != Period.NONE for flag in lowered],
    )
    return [
        LimitBelowUsage(row.feature, limits[row.feature], row.tenants, row.most_used)
        for row in found
    ]
