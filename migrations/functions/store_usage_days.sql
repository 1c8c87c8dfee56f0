-- Store the counts of some counters as those of the present day (UTC), if they have changed.
--
-- A count of a period that is over belongs to the period's last day. One that stays the same is stored
-- every 30 days, so that its last one is never too old.
--
-- after_…: the place of the counter before the first one. Counters whose period has no end come last;
-- their after_end is NULL.
-- Returns the counters in this order, and which of them have changed.
-- Called by: app/usage/day_statements.py
CREATE OR REPLACE FUNCTION store_usage_days(
    after_end timestamptz, after_tenant uuid, after_feature text, after_start timestamptz,
    batch_size integer
) RETURNS TABLE (
    period_end timestamptz, tenant_id uuid, feature text, period_start timestamptz,
    has_changed boolean
) LANGUAGE sql AS $$
    WITH batch AS (
        (
            SELECT c.period_end, c.tenant_id, c.feature, c.period_start, c.used
            FROM usage_counters c
            WHERE (c.period_end, c.tenant_id, c.feature, c.period_start)
                > (after_end, after_tenant, after_feature, after_start)
            ORDER BY c.period_end, c.tenant_id, c.feature, c.period_start
            LIMIT batch_size
        ) UNION ALL (
            SELECT c.period_end, c.tenant_id, c.feature, c.period_start, c.used
            FROM usage_counters c
            WHERE c.period_end IS NULL AND (c.tenant_id, c.feature, c.period_start) > (
                CASE WHEN after_end IS NULL THEN after_tenant
                    ELSE '00000000-0000-0000-0000-000000000000' END, after_feature, after_start)
            ORDER BY c.period_end, c.tenant_id, c.feature, c.period_start
            LIMIT batch_size
        ) ORDER BY period_end, tenant_id, feature, period_start
        LIMIT batch_size
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
    SELECT b.period_end, b.tenant_id, b.feature, b.period_start,
        (b.tenant_id, b.feature, b.period_start) IN (TABLE changed)
    FROM batch b ORDER BY b.period_end, b.tenant_id, b.feature, b.period_start
$$
