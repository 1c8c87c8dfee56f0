"""Previews of the changes that an update of a plan preset would make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from app.core.db.queries import check_precondition, get_row
from app.core.db.statements import Statement
from app.core.json_text import Json, differs
from app.plans.flag_types import UNLIMITED, FlagType, Period
from app.plans.models import Flag, Flags, PlanPreset
from app.plans.presets import COUNT_USES, lost_flags, writable_fields

# Tenants without an override in force whose count of the current period is above the new limit.
# The seats are counted from the memberships.
FIND_ABOVE = Statement(
    "plan_presets.find_tenants_above",
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
    " GROUP BY l.feature ORDER BY l.feature",
    prepare=False,
)


def preview(preset_id: UUID | str, values: Mapping[str, Json]) -> dict[str, Json]:
    """The changes that :func:`app.plans.presets.update_preset` would make (see PlanPreviewSchema).

    Nothing is written. Raises NotFound, and Invalid as the update does.
    """
    preset = get_row(PlanPreset, preset_id)
    written = writable_fields(preset, values)
    check_precondition(preset)
    old = {flag["flag_key"]: flag for flag in preset.flags}
    new = {flag["flag_key"]: flag for flag in written.get("flags", preset.flags)}
    uses = COUNT_USES.one(name=preset.name, preset_id=preset.id)
    removed, retyped = lost_flags(preset.flags, list(new.values()))
    overrides = uses.overrides or {}
    return {
        "name": written.get("name", preset.name),
        "display_name": written.get("display_name", preset.display_name),
        "tenants": uses.tenants,
        "flags_added": [flag for key, flag in new.items() if key not in old],
        "flags_removed": [old[key] for key in removed],
        "flags_changed": [
            {"flag_key": key, "before": old[key], "after": flag}
            for key, flag in new.items()
            if key in old and differs(old[key], flag)
        ],
        "overrides_lost": [
            {"flag_key": key, "overrides": overrides[key]}
            for key in [*removed, *retyped]
            if key in overrides
        ],
        "limits_below_usage": _limits_below_usage(preset, list(_lowered(old, new))),
    }


def _lowered(old: Mapping[str, Flag], new: Mapping[str, Flag]) -> Iterator[Flag]:
    """The limits of ``new``, except credits, that are lower than before or were no limits."""
    for key, flag in new.items():
        limit, before = flag["default_value"], old.get(key, {})
        if flag["flag_type"] != FlagType.LIMIT or limit == UNLIMITED or "kind" in flag["metering"]:
            continue
        was_limit = before.get("flag_type") == FlagType.LIMIT
        if not was_limit or before["default_value"] == UNLIMITED or limit < before["default_value"]:
            yield flag


def _limits_below_usage(preset: PlanPreset, lowered: Flags) -> list[dict[str, Json]]:
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
    return [{**row._asdict(), "limit": limits[row.feature]} for row in found]
