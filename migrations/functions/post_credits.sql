-- Add an entry to the ledger of credits, and its amount to the lot and to the balance.
--
-- The caller has locked the balance. An entry of the kind `consume` also counts as used in the plan's
-- current period. What expires is `untold` until a job has recorded the event.
-- Called by: app/credits/statements.py, burn_credits, grant_credits, refresh_credits, settle_credits
CREATE OR REPLACE FUNCTION post_credits(
    wanted_tenant_id uuid, wanted_lot_id uuid, entry_kind text, entry_amount bigint,
    entry_hold_id uuid, entry_reason text
) RETURNS void LANGUAGE sql AS $$
    WITH lot AS (
        UPDATE credit_lots l SET
            version = l.version + 1,
            remaining = l.remaining + entry_amount,
            spent = l.spent - CASE entry_kind WHEN 'consume' THEN entry_amount ELSE 0 END,
            untold = l.untold - CASE entry_kind WHEN 'expire' THEN entry_amount ELSE 0 END
        WHERE l.tenant_id = wanted_tenant_id AND l.id = wanted_lot_id
        RETURNING l.feature, l.remaining, l.expires_at
    ), balance AS (
        UPDATE credit_balances b SET
            balance = b.balance + entry_amount,
            due_at = CASE WHEN entry_amount > 0 THEN least(b.due_at, lot.expires_at)
                ELSE b.due_at END
        FROM lot
        WHERE b.tenant_id = wanted_tenant_id AND b.feature = lot.feature
        RETURNING b.feature, b.balance, b.period_start, lot.remaining
    ), counter AS (
        UPDATE usage_counters c SET used = c.used - entry_amount
        FROM balance b
        WHERE entry_kind = 'consume' AND c.tenant_id = wanted_tenant_id AND c.feature = b.feature
            AND c.period_start = b.period_start
    )
    INSERT INTO credit_entries
        (tenant_id, at, feature, lot_id, kind, amount, remaining, balance, hold_id, reason)
        SELECT wanted_tenant_id, clock_timestamp(), b.feature, wanted_lot_id, entry_kind,
            entry_amount, b.remaining, b.balance, entry_hold_id, entry_reason
        FROM balance b
$$
