-- Take credits from the lots of a balance: lowest priority first, then earliest end, then oldest.
--
-- The caller has refreshed the balance and knows that it has the amount.
--
-- held_until: when the hold expires that takes them; NULL to consume them.
-- Called by: consume_usage, hold_usage, settle_credits
CREATE OR REPLACE FUNCTION burn_credits(
    wanted_tenant_id uuid, wanted_feature text, amount bigint, wanted_hold_id uuid,
    held_until timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    lot record;
    part bigint;
    missing bigint := amount;
BEGIN
    FOR lot IN
        SELECT l.id, l.remaining FROM credit_lots l
        WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature AND l.remaining > 0
            AND l.starts_at <= now() AND coalesce(l.expires_at, 'infinity') > now()
        ORDER BY l.priority, coalesce(l.expires_at, 'infinity'), l.created_at, l.id
    LOOP
        EXIT WHEN missing = 0;
        part := least(missing, lot.remaining);
        PERFORM post_credits(
            wanted_tenant_id, lot.id, CASE WHEN held_until IS NULL THEN 'consume' ELSE 'hold' END,
            -part, wanted_hold_id, NULL
        );
        IF held_until IS NOT NULL THEN
            INSERT INTO credit_holds (tenant_id, hold_id, lot_id, feature, amount, expires_at)
                VALUES (wanted_tenant_id, wanted_hold_id, lot.id, wanted_feature, part, held_until);
        END IF;
        missing := missing - part;
    END LOOP;
    UPDATE credit_balances b SET due_at = least(b.due_at, held_until)
        WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature
            AND held_until IS NOT NULL;
END
$$
