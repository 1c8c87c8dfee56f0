-- Add a lot to a balance of credits. The caller has locked the balance.
--
-- new_period: the period in which the plan grants it, else NULL.
-- Returns the id of the lot.
-- Called by: grant_lot, refresh_credits
CREATE OR REPLACE FUNCTION grant_credits(
    wanted_tenant_id uuid, wanted_feature text, amount bigint, new_source text,
    new_priority bigint, starts timestamptz, expires timestamptz, new_period timestamptz,
    new_reference text
) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := gen_random_uuid();
BEGIN
    INSERT INTO credit_lots (
        tenant_id, id, created_at, starts_at, expires_at, period_start, feature, granted, remaining,
        spent, untold, version, priority, source, reference
    ) VALUES (
        wanted_tenant_id, new_id, clock_timestamp(), starts, expires, new_period, wanted_feature,
        amount, 0, 0, 0, 0, new_priority, new_source, new_reference
    );
    PERFORM post_credits(wanted_tenant_id, new_id, 'grant', amount, NULL, NULL);
    UPDATE credit_balances b SET
        last_grant = amount, granted_at = clock_timestamp(), granted_balance = b.balance
        WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature;
    RETURN new_id;
END
$$
