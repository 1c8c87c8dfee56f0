"""The SQL statements of usage by day."""

from __future__ import annotations

from sqlalchemy import ARRAY, Text, Uuid, bindparam, text

from app.core.db.models import Moment
from app.core.db.statements import Statement

LIST_DAYS = Statement(
    "usage_days.list",
    "SELECT CAST(day AS text) AS day, used"
    " FROM usage_by_day(CAST(:tenant_id AS uuid), :feature, :days) ORDER BY day",
)
FORECAST = Statement(
    "usage_days.forecast",
    "SELECT * FROM forecast_usage(CAST(:tenant_id AS uuid), CAST(:feature AS text))",
)
# Counters whose period has an end come first. A count that stays the same is stored every 30 days, so
# that its last one is never too old.
STORE = Statement(
    "usage_days.store",
    """
    WITH batch AS (
        (
            SELECT period_end, tenant_id, feature, period_start, used FROM usage_counters
            WHERE (period_end, tenant_id, feature, period_start) > (CAST(:period_end AS timestamptz),
                CAST(:tenant_id AS uuid), CAST(:feature AS text), CAST(:period_start AS timestamptz))
            ORDER BY period_end, tenant_id, feature, period_start LIMIT :limit
        ) UNION ALL (
            SELECT period_end, tenant_id, feature, period_start, used FROM usage_counters
            WHERE period_end IS NULL AND (tenant_id, feature, period_start) > (
                CASE WHEN CAST(:period_end AS timestamptz) IS NULL THEN CAST(:tenant_id AS uuid)
                    ELSE '00000000-0000-0000-0000-000000000000' END,
                CAST(:feature AS text), CAST(:period_start AS timestamptz))
            ORDER BY period_end, tenant_id, feature, period_start LIMIT :limit
        ) ORDER BY period_end, tenant_id, feature, period_start LIMIT :limit
    ), changed AS (
        INSERT INTO usage_days (tenant_id, feature, period_start, day, used, added)
        SELECT b.tenant_id, b.feature, b.period_start,
            (least(now(), b.period_end - interval '1 microsecond') AT TIME ZONE 'UTC')::date,
            b.used, b.used - coalesce(last.used, 0)
        FROM batch b
        LEFT JOIN LATERAL (
            SELECT d.used, d.day FROM usage_days d
            WHERE d.tenant_id = b.tenant_id AND d.feature = b.feature
                AND d.period_start = b.period_start
            ORDER BY d.day DESC LIMIT 1
        ) last ON true
        WHERE b.used <> coalesce(last.used, 0) OR last.day < now() - interval '30 days'
        ON CONFLICT (tenant_id, feature, period_start, day) DO UPDATE
            SET used = excluded.used, added = usage_days.added + excluded.added
        RETURNING tenant_id, feature, period_start
    )
    SELECT period_end, tenant_id, feature, period_start,
        (tenant_id, feature, period_start) IN (TABLE changed) AS has_changed
    FROM batch ORDER BY period_end, tenant_id, feature, period_start
    """,
)
TAKE_FORECASTS = Statement(
    "usage_counters.take_forecasts",
    text("SELECT * FROM take_forecasts(:tenant_ids, :features, :period_starts)").bindparams(
        bindparam("tenant_ids", type_=ARRAY(Uuid)),
        bindparam("features", type_=ARRAY(Text)),
        bindparam("period_starts", type_=ARRAY(Moment)),
    ),
)
