-- Hold an amount of a limit until it is settled or expires, if the amount is free.
--
-- A lease takes less if less is free. A digest of an idempotency key that made a hold within 24 hours
-- finds that hold. A hold also holds the credits that its use takes; a lease cannot.
--
-- seconds: when the hold expires. new_digest: NULL without an idempotency key.
-- Returns the limit's state, and the hold if it is allowed; no row for an unknown tenant. After a
-- `fault` the caller rolls back.
-- Called by: app/usage/hold_statements.py
CREATE OR REPLACE FUNCTION hold_usage(
    wanted_tenant_id uuid, wanted_feature text, new_id uuid, new_kind text, wanted_amount bigint,
    seconds integer, new_digest uuid, new_reference text
) RETURNS TABLE (
    fault text, is_allowed boolean, most bigint, policy text, used bigint, held bigint,
    ends timestamptz, affords bigint, hold usage_holds
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    granted record;
    counter record;
    is_active boolean;
    free bigint;
    balance record;
BEGIN
    SELECT t.is_active INTO is_active FROM tenants t WHERE t.id = wanted_tenant_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO granted FROM tenant_limits(wanted_tenant_id, wanted_feature);
    fault := CASE
        WHEN NOT FOUND THEN 'unknown'
        WHEN wanted_feature = 'seats' THEN 'seats'
        WHEN new_kind = 'lease' AND granted.policy = 'soft' THEN 'soft'
        WHEN new_kind = 'lease' AND granted.credits IS NOT NULL THEN 'credits'
        WHEN NOT is_active THEN 'suspended'
    END;
    IF fault IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF granted.credits IS NOT NULL THEN
        SELECT * INTO balance FROM refresh_credits(wanted_tenant_id, granted.credits);
        affords := balance.free / granted.rate;
    END IF;
    SELECT * INTO counter FROM lock_usage(wanted_tenant_id, wanted_feature, granted.period);
    most := granted.most;
    policy := granted.policy;
    used := counter.used;
    held := counter.held;
    ends := counter.ends;
    IF granted.credits = wanted_feature AND affords IS NOT NULL THEN
        most := balance.most;
        held := least(held, balance.most - balance.free);
        used := balance.most - balance.free - held;
        ends := balance.ends;
    END IF;
    free := least(
        CASE WHEN policy = 'soft' OR most = -1 THEN wanted_amount ELSE most - used - held END, affords
    );
    hold.amount := CASE
        WHEN new_kind = 'lease' THEN least(wanted_amount, free)
        ELSE wanted_amount
    END;
    is_allowed := hold.amount BETWEEN 1 AND free;
    IF used + held + wanted_amount > 1000000000000000000 THEN
        fault := 'too_large';
    END IF;
    IF new_digest IS NOT NULL THEN
        UPDATE usage_holds h SET digest = NULL
            WHERE h.tenant_id = wanted_tenant_id AND h.digest = new_digest
                AND h.created_at <= now() - interval '24 hours';
    END IF;
    IF is_allowed AND fault IS NULL THEN
        INSERT INTO usage_holds (
            tenant_id, id, created_at, expires_at, ttl_seconds, feature, period_start, kind, state,
            amount, counted, over_by, is_late, remaining, reference, digest,
            credits, rate
        ) VALUES (
            wanted_tenant_id, new_id, now(), now() + seconds * interval '1 second', seconds,
            wanted_feature, counter.starts, new_kind, 'open', hold.amount, 0, 0, false,
            least(
                CASE WHEN most > -1 THEN greatest(most - used - held - hold.amount, 0) END,
                affords - hold.amount
            ), new_reference, new_digest, CASE WHEN affords IS NOT NULL THEN granted.credits END,
            granted.rate
        ) ON CONFLICT (tenant_id, digest) WHERE digest IS NOT NULL DO NOTHING
        RETURNING * INTO hold;
        IF FOUND THEN
            IF hold.credits IS NOT NULL THEN
                PERFORM burn_credits(
                    wanted_tenant_id, hold.credits, hold.amount * hold.rate, hold.id,
                    hold.expires_at
                );
                affords := affords - hold.amount;
            END IF;
            held := held + hold.amount;
            UPDATE usage_counters c SET held = c.held + hold.amount
                WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
                    AND c.period_start = counter.starts;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    SELECT h.* INTO hold FROM usage_holds h
        WHERE h.tenant_id = wanted_tenant_id AND h.digest = new_digest;
    IF FOUND THEN
        is_allowed := true;
        fault := CASE WHEN hold.amount <> wanted_amount THEN 'reused' END;
        IF hold.state = 'open' AND hold.expires_at <= now() THEN  -- in a past period, not swept yet
            hold.state := 'expired';
            hold.ended_at := hold.expires_at;
        END IF;
    END IF;
    RETURN NEXT;
END
$$
