-- List the limits of a tenant with what is used and held in their current periods.
--
-- Holds that have expired hold nothing, also before they are swept.
--
-- wanted_feature: only this limit; NULL for all.
-- Called by: app/usage/statements.py, app/tenants/includes.py, app/tenants/filters.py, app/usage/health.py, consume_usage, forecast_usage
CREATE OR REPLACE FUNCTION tenant_usage(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (
    feature text, most bigint, period text, policy text, warn_at smallint[],
    starts timestamptz, ends timestamptz, used bigint, announced smallint,
    held bigint
) LANGUAGE sql STABLE AS $$
    SELECT l.*, p.starts, p.ends,
        CASE WHEN l.feature = 'seats' THEN count_seats(wanted_tenant_id)
            ELSE coalesce(c.used, 0) END,
        coalesce(c.announced, 0::smallint),
        CASE WHEN c.held > 0 THEN (
            SELECT coalesce(sum(h.amount), 0)::bigint FROM usage_holds h
            WHERE h.tenant_id = wanted_tenant_id AND h.feature = l.feature
                AND h.period_start = p.starts AND h.state = 'open' AND h.expires_at > now()
        ) ELSE 0 END
    FROM tenant_limits(wanted_tenant_id, wanted_feature) l
    CROSS JOIN LATERAL usage_period(wanted_tenant_id, l.feature, l.period, now()) p
    LEFT JOIN usage_counters c ON c.tenant_id = wanted_tenant_id AND c.feature = l.feature
        AND c.period_start = p.starts
$$
