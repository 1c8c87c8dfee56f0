-- Find the thresholds that a balance has fallen to, and remember them as told.
--
-- A threshold is told again after a grant that has lifted the balance above it, and at most once an
-- hour. The caller has locked the balance.
--
-- Returns for each threshold the `percent` of the last grant that is used then.
-- Called by: app/credits/statements.py
CREATE OR REPLACE FUNCTION cross_credits(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (percent integer, most bigint, used bigint, ends timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    balance credit_balances;
    credits record;
    threshold record;
    told_at timestamptz;
BEGIN
    SELECT b.* INTO balance FROM credit_balances b
        WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature;
    SELECT * INTO credits FROM tenant_credits(wanted_tenant_id, wanted_feature);
    most := credits.most;
    used := credits.most - credits.free;
    ends := credits.ends;
    FOR threshold IN
        SELECT t.key, t.percent
        FROM tenant_limits(wanted_tenant_id, wanted_feature) l
        CROSS JOIN LATERAL (
            SELECT p || '%' AS key, p::integer AS percent,
                trunc(balance.last_grant * (100 - p) / 100.0) AS rest
            FROM unnest(l.warn_at) p
            UNION
            SELECT CASE b WHEN '0' THEN '100%' ELSE b END,
                greatest(floor(100 - 100.0 * b::bigint / balance.last_grant), 0)::integer, b::bigint
            FROM json_array_elements_text(l.metering -> 'warn_below') b
        ) t
        WHERE l.credits = wanted_feature AND credits.free <= t.rest
            AND balance.granted_balance > t.rest
        ORDER BY t.rest DESC
    LOOP
        told_at := balance.told ->> threshold.key;
        CONTINUE WHEN told_at >= least(balance.granted_at, now() - interval '1 hour');
        balance.told := balance.told || jsonb_build_object(threshold.key, now());
        percent := threshold.percent;
        RETURN NEXT;
    END LOOP;
    UPDATE credit_balances b SET told = balance.told
        WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature
            AND b.told <> balance.told;
END
$$
