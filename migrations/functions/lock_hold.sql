-- Lock a hold or lease with its credits and its counter, and read the state of its limit.
--
-- The balance of credits is locked first, then the counter of the hold's period, then its holds, of
-- which those that have expired are swept. A limit that the plan lacks now has nothing free.
--
-- wanted_tenant_id: NULL for the platform.
-- Returns the hold and the limit's state: `held` by others, and `free` for it (10^18: unlimited). `paid`
-- is the part of the hold that its credits pay, and `affords` what the others suffice for; both are
-- NULL without credits. `warn_at` is empty and `is_over` true after the end of the period. `used` is
-- NULL for an unknown hold.
-- Called by: settle_hold
CREATE OR REPLACE FUNCTION lock_hold(
    wanted_tenant_id uuid, wanted_id uuid, wanted_kind text,
    OUT hold usage_holds, OUT most bigint, OUT policy text, OUT used bigint, OUT held bigint,
    OUT free bigint, OUT ends timestamptz, OUT is_over boolean, OUT announced smallint,
    OUT announced_limit bigint, OUT warn_at smallint[], OUT affords bigint, OUT paid bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    granted record;
    counter record;
    balance record;
BEGIN
    SELECT h.* INTO hold FROM usage_holds h
        WHERE h.id = wanted_id AND h.kind = wanted_kind
            AND (wanted_tenant_id IS NULL OR h.tenant_id = wanted_tenant_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF hold.credits IS NOT NULL THEN
        SELECT * INTO balance FROM refresh_credits(hold.tenant_id, hold.credits);
        affords := balance.free / hold.rate;
        SELECT coalesce(sum(h.amount), 0) / hold.rate INTO paid FROM credit_holds h
            WHERE h.tenant_id = hold.tenant_id AND h.hold_id = wanted_id;
    END IF;
    SELECT c.used, c.held, c.announced, c.announced_limit, c.period_end INTO counter
        FROM usage_counters c
        WHERE c.tenant_id = hold.tenant_id AND c.feature = hold.feature
            AND c.period_start = hold.period_start
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    held := counter.held - sweep_holds(hold.tenant_id, hold.feature, hold.period_start);
    SELECT h.* INTO hold FROM usage_holds h WHERE h.tenant_id = hold.tenant_id AND h.id = wanted_id;
    SELECT * INTO granted FROM tenant_limits(hold.tenant_id, hold.feature);
    most := coalesce(granted.most, 0);
    policy := coalesce(granted.policy, 'hard');
    used := counter.used;
    ends := counter.period_end;
    IF hold.credits = hold.feature AND affords IS NOT NULL THEN
        most := balance.most;
        held := least(held, balance.most - balance.free);
        used := balance.most - balance.free - held;
        ends := balance.ends;
    END IF;
    IF hold.state = 'open' THEN
        held := held - hold.amount;
    END IF;
    free := CASE
        WHEN policy = 'soft' OR most = -1 THEN 1000000000000000000
        ELSE most - used - held
    END;
    is_over := coalesce(counter.period_end <= now(), false);
    announced := counter.announced;
    announced_limit := CASE WHEN granted.feature IS NULL THEN counter.announced_limit ELSE most END;
    warn_at := CASE WHEN is_over THEN '{}' ELSE coalesce(granted.warn_at, '{}') END;
END
$$
