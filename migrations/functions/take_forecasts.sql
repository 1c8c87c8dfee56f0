-- Find the limits that end within `warn_days` at the present pace, and remember them as told.
--
-- A limit is told once in a period. Credits are told again after a grant, at most once an hour.
--
-- The arrays are the keys of the counters that are looked at.
-- Returns what forecast_usage does, with `tenant_id` and `feature`.
-- Called by: app/usage/day_statements.py
CREATE OR REPLACE FUNCTION take_forecasts(
    tenant_ids uuid[], features text[], period_starts timestamptz[]
) RETURNS TABLE (
    tenant_id uuid, feature text, most bigint, used bigint, pace_per_day double precision,
    ends_at timestamptz
) LANGUAGE sql AS $$
    WITH limits AS (
        SELECT p.name, flag ->> 'flag_key' AS feature,
            (flag #>> '{metering,warn_days}')::int AS warn_days
        FROM plan_presets p CROSS JOIN LATERAL json_array_elements(p.flags) flag
        WHERE flag #> '{metering,warn_days}' IS NOT NULL
    ), due AS (
        SELECT c.tenant_id, c.feature, c.forecast_at, f.*
        FROM unnest(tenant_ids, features, period_starts)
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
    RETURNING due.tenant_id, due.feature, due.most, due.used, due.pace_per_day, due.ends_at
$$
