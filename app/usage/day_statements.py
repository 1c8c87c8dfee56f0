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
# A count that stays the same is stored every 30 days, so that its last one is never too old.
_STORE = """
    WITH batch AS ({counts} LIMIT :limit), changed AS (
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
"""
STORE_WITH_END = Statement(
    "usage_days.store_with_end",
    _STORE.format(
        counts="""
        SELECT period_end, tenant_id, feature, period_start, used FROM usage_counters
        WHERE (period_end, tenant_id, feature, period_start) > (CAST(:period_end AS timestamptz),
            CAST(:tenant_id AS uuid), CAST(:feature AS text), CAST(:period_start AS timestamptz))
        ORDER BY period_end, tenant_id, feature, period_start
        """
    ),
)
STORE_WITHOUT_END = Statement(
    "usage_days.store_without_end",
    _STORE.format(
        counts="""
        SELECT period_end, tenant_id, feature, period_start, used FROM usage_counters
        WHERE period_end IS NULL AND (tenant_id, feature, period_start) > (
            CAST(:tenant_id AS uuid), CAST(:feature AS text), CAST(:period_start AS timestamptz))
        ORDER BY period_end, tenant_id, feature, period_start
        """
    ),
)
TAKE_FORECASTS = Statement(
    "usage_counters.take_forecasts",
    text(
        """
        WITH limits AS (
            SELECT p.name, flag ->> 'flag_key' AS feature,
                (flag #>> '{metering,warn_days}')::int AS warn_days
            FROM plan_presets p CROSS JOIN LATERAL json_array_elements(p.flags) flag
            WHERE flag #> '{metering,warn_days}' IS NOT NULL
        ), due AS (
            SELECT c.tenant_id, c.feature, c.forecast_at, f.*
            FROM unnest(:tenant_ids, :features, :period_starts)
                AS changed (tenant_id, feature, period_start)
            JOIN usage_counters c USING (tenant_id, feature, period_start)
            JOIN tenants t ON t.id = c.tenant_id
            JOIN limits l ON l.name = t.plan_name AND l.feature = c.feature
            LEFT JOIN credit_balances b ON b.tenant_id = c.tenant_id AND b.feature = c.feature
            CROSS JOIN LATERAL forecast_usage(c.tenant_id, c.feature) f
            WHERE (
                c.forecast_at IS NULL
                OR c.forecast_at < b.granted_at AND c.forecast_at < now() - interval '1 hour'
            ) AND f.period_start = c.period_start AND f.used < f.most
                AND f.ends_at <= now() + l.warn_days * interval '1 day'
        )
        UPDATE usage_counters c SET forecast_at = now()
        FROM due
        WHERE c.tenant_id = due.tenant_id AND c.feature = due.feature
            AND c.period_start = due.period_start
            AND c.forecast_at IS NOT DISTINCT FROM due.forecast_at
        RETURNING due.*
        """
    ).bindparams(
        bindparam("tenant_ids", type_=ARRAY(Uuid)),
        bindparam("features", type_=ARRAY(Text)),
        bindparam("period_starts", type_=ARRAY(Moment)),
    ),
)
DELETE_OLD = Statement(
    "usage_days.delete_old",
    "DELETE FROM usage_days WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage_days"
    " WHERE day < now() - :days * interval '1 day' ORDER BY day LIMIT :count))",
)
