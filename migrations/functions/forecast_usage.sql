-- Tell when a limit ends at the pace of the last 7 days.
--
-- The pace is what was used in these days, today included, divided by the time of them that has passed.
--
-- Returns no row for a limit that the plan does not have. `ends_at` is NULL for an unlimited one,
-- where the next period begins before, and where the limit lasts longer than a year.
-- Called by: app/usage/day_statements.py, take_forecasts
CREATE OR REPLACE FUNCTION forecast_usage(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (
    most bigint, used bigint, period_start timestamptz, pace_per_day double precision,
    ends_at timestamptz
) LANGUAGE sql STABLE AS $$
    SELECT u.most, u.used, u.starts, round(pace::numeric, 1)::double precision,
        CASE WHEN u.most > -1 AND pace > 0 AND u.most - u.used <= 365 * pace
                AND now() + days_left * interval '1 day' < coalesce(u.ends, 'infinity')
            THEN date_trunc('second', now() + days_left * interval '1 day') END
    FROM tenant_usage(wanted_tenant_id, wanted_feature) u
    CROSS JOIN LATERAL (
        SELECT greatest(sum(d.used), 0) / (
            6 + extract(epoch FROM now() - date_trunc('day', now(), 'UTC')) / 86400
        )::double precision AS pace
        FROM usage_by_day(wanted_tenant_id, wanted_feature, 7) d
    ) recent
    CROSS JOIN LATERAL (
        SELECT least(greatest(u.most - u.used, 0) / nullif(pace, 0), 365) AS days_left
    ) rest
$$
