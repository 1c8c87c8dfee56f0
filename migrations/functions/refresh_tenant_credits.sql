-- Bring the balances of a tenant up to date: those of its plan, and those that have lots.
--
-- They are locked in the order of their features, so that two calls do not wait for each other.
--
-- wanted_feature: only this balance; NULL for all.
-- Returns what refresh_credits does, and what open holds have taken.
-- Called by: app/credits/statements.py
CREATE OR REPLACE FUNCTION refresh_tenant_credits(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (feature text, most bigint, free bigint, ends timestamptz, held bigint)
LANGUAGE sql AS $$
    SELECT f.feature, r.most, r.free, r.ends, (
        SELECT coalesce(sum(h.amount), 0)::bigint FROM credit_holds h
        WHERE h.tenant_id = wanted_tenant_id AND h.feature = f.feature AND h.expires_at > now()
    )
    FROM (
        SELECT known.feature FROM (
            SELECT l.feature FROM tenant_limits(wanted_tenant_id, wanted_feature) l
            WHERE l.credits = l.feature
            UNION
            SELECT b.feature FROM credit_balances b
            WHERE b.tenant_id = wanted_tenant_id AND b.feature = coalesce(wanted_feature, b.feature)
        ) known
        ORDER BY known.feature COLLATE "C" OFFSET 0
    ) f
    CROSS JOIN LATERAL refresh_credits(wanted_tenant_id, f.feature) r
$$
