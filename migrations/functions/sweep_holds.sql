-- End the open holds of a counter that have expired. The caller has locked the counter.
--
-- Returns what they held, which is free again.
-- Called by: app/usage/hold_statements.py, lock_hold, lock_usage
CREATE OR REPLACE FUNCTION sweep_holds(
    wanted_tenant_id uuid, wanted_feature text, wanted_start timestamptz
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    freed bigint;
BEGIN
    WITH expired AS (
        UPDATE usage_holds h SET state = 'expired', ended_at = h.expires_at
        WHERE h.tenant_id = wanted_tenant_id AND h.feature = wanted_feature
            AND h.period_start = wanted_start AND h.state = 'open' AND h.expires_at <= now()
        RETURNING h.amount
    )
    SELECT coalesce(sum(amount), 0) INTO freed FROM expired;
    IF freed > 0 THEN
        UPDATE usage_counters c SET held = c.held - freed
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
                AND c.period_start = wanted_start;
    END IF;
    RETURN freed;
END
$$
