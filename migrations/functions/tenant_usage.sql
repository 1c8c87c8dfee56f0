-- List the limits of a tenant with what is used and held in their current periods.
--
-- Holds that have expired hold nothing, also before they are swept. Of credits, `most` is what was
-- granted, and what is neither used nor held is the balance.
--
-- wanted_feature: only this limit; NULL for all.
-- Called by: app/usage/statements.py, app/tenants/includes.py, app/tenants/filters.py, app/usage/health.py, access_version, consume_usage, forecast_usage
CREATE OR REPLACE FUNCTION tenant_usage(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (
    feature text, most bigint, period text, policy text, warn_at smallint[],
    starts timestamptz, ends timestamptz, used bigint, announced smallint,
    held bigint
) LANGUAGE sql STABLE AS $$
    SELECT l.feature, coalesce(b.most, l.most), l.period, l.policy, l.warn_at, p.starts,
        CASE WHEN b.most IS NULL THEN p.ends ELSE b.ends END,
        CASE WHEN l.feature = 'seats' THEN count_seats(wanted_tenant_id)
            WHEN b.free IS NOT NULL THEN greatest(b.most - b.free - h.held, 0)
            ELSE coalesce(c.used, 0) END,
        coalesce(c.announced, 0::smallint), least(h.held, b.most - b.free)
    FROM tenant_limits(wanted_tenant_id, wanted_feature) l
    CROSS JOIN LATERAL usage_period(wanted_tenant_id, l.feature, l.period, now()) p
    LEFT JOIN usage_counters c ON c.tenant_id = wanted_tenant_id AND c.feature = l.feature
        AND c.period_start = p.starts
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.held > 0 THEN c.held - (
            SELECT coalesce(sum(h.amount), 0)::bigint FROM usage_holds h
            WHERE h.tenant_id = wanted_tenant_id AND h.feature = l.feature
                AND h.period_start = p.starts AND h.state = 'open' AND h.expires_at <= now()
        ) ELSE 0 END AS held
    ) h
    CROSS JOIN LATERAL tenant_credits(
        wanted_tenant_id, CASE WHEN l.credits = l.feature THEN l.feature END
    ) b
$$
