"""Tenants that use more than their limits."""

from __future__ import annotations

from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.health import SHOWN, Finding, shortened
from app.core.observability.metrics import SharedMetric
from app.tenants.filters import AT_LIMIT

OVER_LIMITS = SharedMetric(
    "tenants_over_limits",
    "Tenants that use more than a limit (usage) or have more members than seats (seats).",
    ["kind"],
)
# A counter or a tenant can be over a limit only if it is over the preset's, which can have rules,
# or has an override. For these, the database function `tenant_usage` knows the limit in force.
_OVER_LIMITS = """
WITH limits AS (
    SELECT p.name, flag ->> 'flag_key' AS feature, (flag ->> 'default_value')::bigint AS most,
        flag -> 'rules' IS NOT NULL AS has_rules
    FROM plan_presets p CROSS JOIN LATERAL json_array_elements(p.flags) flag
    WHERE flag ->> 'flag_type' = 'limit'
), candidates AS (
    SELECT t.id, t.slug, l.feature
    FROM limits l
    JOIN tenants t ON t.plan_name = l.name
    JOIN usage_counters c ON c.tenant_id = t.id AND c.feature = l.feature
        AND (c.period_end IS NULL OR c.period_end > now())
    WHERE l.feature <> 'seats' AND (l.most > -1 AND c.used > l.most OR l.has_rules OR EXISTS (
        SELECT FROM feature_overrides o WHERE o.tenant_id = t.id AND o.flag_key = l.feature
    ))
    UNION  -- a counter of another period can be there too
    SELECT t.id, t.slug, l.feature
    FROM limits l
    JOIN tenants t ON t.plan_name = l.name
    JOIN (
        SELECT m.tenant_id FROM memberships m WHERE m.is_active
        UNION ALL SELECT i.tenant_id FROM invitations i
        WHERE i.accepted_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > now()
    ) taken ON taken.tenant_id = t.id
    WHERE l.feature = 'seats'
    GROUP BY t.id, l.feature, l.most, l.has_rules
    HAVING l.most > -1 AND count(*) > l.most OR l.has_rules OR EXISTS (
        SELECT FROM feature_overrides o WHERE o.tenant_id = t.id AND o.flag_key = l.feature
    )
), exceeded AS (
    SELECT c.slug, c.feature
    FROM candidates c CROSS JOIN LATERAL tenant_usage(c.id, c.feature) u
    WHERE u.most > -1 AND u.used > u.most
)
"""
COUNT_OVER_LIMITS = Statement(
    "usage_counters.count_over_limits",
    f"{_OVER_LIMITS} SELECT count(DISTINCT slug) FILTER (WHERE feature <> 'seats') AS usage,"  # noqa: S608
    " count(DISTINCT slug) FILTER (WHERE feature = 'seats') AS seats FROM exceeded",
    prepare=False,
)
LIST_OVER_LIMITS = Statement(
    "usage_counters.list_over_limits",
    f"{_OVER_LIMITS} SELECT slug, array_agg(feature ORDER BY feature) AS features"  # noqa: S608
    " FROM exceeded GROUP BY slug ORDER BY slug LIMIT :limit",
    prepare=False,
)


def check_limits() -> Finding:
    tenants = LIST_OVER_LIMITS.all(limit=SHOWN + 1)
    if not tenants:
        return Finding("limits", True, "no tenant uses more than its plan allows")
    listed = shortened([f"{one.slug}: {' '.join(one.features)}" for one in tenants], "; ")
    fix = "These tenants use more than their limits. Override the limits, or change the plans."
    return Finding("limits", True, f"exceeded by {listed}", fix)


def count_over_limits() -> None:
    """Store for ``/metrics`` how many tenants are over a limit, and how many over their seats.

    It reads all counters and memberships; a million counters take about a second.
    """
    with tenancy.platform_transaction():
        found = COUNT_OVER_LIMITS.one()._asdict()
    OVER_LIMITS.put(found)


WORK = {"over_limit": (AT_LIMIT, "/v1/tenants?is_at_limit=true&include=limits")}
CHECKS = {"limits": check_limits}
