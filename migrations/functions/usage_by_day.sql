-- List how much the counts of a limit have grown on each of the last days (UTC), today included.
--
-- A day is negative where more was given back than counted. Today includes what was counted after the
-- last count was stored.
-- Called by: app/usage/day_statements.py, forecast_usage
CREATE OR REPLACE FUNCTION usage_by_day(wanted_tenant_id uuid, wanted_feature text, days int)
RETURNS TABLE (day date, used bigint) LANGUAGE sql STABLE AS $$
    WITH growth AS (
        SELECT d.day, d.added
        FROM usage_days d
        WHERE d.tenant_id = wanted_tenant_id AND d.feature = wanted_feature
        UNION ALL
        SELECT (now() AT TIME ZONE 'UTC')::date, c.used - coalesce((
            SELECT d.used FROM usage_days d
            WHERE d.tenant_id = c.tenant_id AND d.feature = c.feature
                AND d.period_start = c.period_start
            ORDER BY d.day DESC LIMIT 1
        ), 0)
        FROM usage_counters c
        WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
            AND (c.period_end IS NULL OR c.period_end > now())
    )
    SELECT each.day::date, coalesce(sum(growth.added), 0)::bigint
    FROM generate_series((now() AT TIME ZONE 'UTC')::date - days + 1,
        (now() AT TIME ZONE 'UTC')::date, interval '1 day') each (day)
    LEFT JOIN growth ON growth.day = each.day
    GROUP BY each.day
    ORDER BY each.day
$$
