-- A balance of credits, as refresh_credits would leave it.
--
-- What expired holds took is free, and what the plan grants in the current period is granted.
--
-- Returns `most`, all that was granted in the lots that have started and not expired (-1: unlimited),
-- and `free`, what is left of it (NULL: unlimited). `starts` and `ends` are the plan's period; `ends`
-- is NULL if the plan will grant no more. All are NULL for no feature.
-- Called by: consume_usage, cross_credits, refresh_credits, settle_hold, tenant_usage
CREATE OR REPLACE FUNCTION tenant_credits(
    wanted_tenant_id uuid, wanted_feature text,
    OUT most bigint, OUT free bigint, OUT starts timestamptz, OUT ends timestamptz
) LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    plan record;
    given bigint;  -- by the plan in the current period
    kept bigint;  -- of what it has given before
BEGIN
    SELECT l.most, l.period, (l.metering ->> 'rollover_cap')::bigint AS cap INTO plan
        FROM tenant_limits(wanted_tenant_id, wanted_feature) l WHERE l.credits = wanted_feature;
    IF FOUND THEN
        SELECT p.starts, p.ends INTO starts, ends
            FROM usage_period(wanted_tenant_id, wanted_feature, plan.period, now()) p;
        IF plan.most = -1 THEN
            most := -1;
            RETURN;
        END IF;
    END IF;
    SELECT coalesce(sum(l.granted), 0), coalesce(sum(l.remaining + coalesce(h.freed, 0)), 0),
            coalesce(sum(l.granted) FILTER (WHERE l.period_start = starts), 0),
            coalesce(sum(l.remaining + coalesce(h.freed, 0))
                FILTER (WHERE l.period_start < starts), 0)
        INTO most, free, given, kept
        FROM credit_lots l
        LEFT JOIN (
            SELECT h.lot_id, sum(h.amount) AS freed FROM credit_holds h
            WHERE h.tenant_id = wanted_tenant_id AND h.feature = wanted_feature
                AND h.expires_at <= now()
            GROUP BY h.lot_id
        ) h ON h.lot_id = l.id
        WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature AND l.starts_at <= now()
            AND coalesce(l.expires_at, 'infinity') > now();
    most := most + greatest(plan.most - given, 0);
    free := free + greatest(plan.most - given, 0) - greatest(kept - plan.cap, 0);
    IF plan.most = 0 THEN
        ends := NULL;
    END IF;
END
$$
