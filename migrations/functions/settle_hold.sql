-- Count what was used under a hold or a lease, and end it or change what it holds.
--
-- It counts in the period in which the hold was made. What the hold has is always counted. More is
-- counted if it fits into the limit now; else it is `over_by`, and the hold ends. An expired hold has
-- nothing: for 24 hours, what fits is counted and the rest is `over_by`. The same total again changes
-- nothing. A limit that the plan lacks now has nothing free. A lease of a suspended tenant ends.
-- Of more than a lease has, what fits is counted. A lease ends with its period. Credits are taken from
-- the lots that the hold has taken them from.
--
-- wanted_tenant_id: NULL for the platform.
-- total: all that was used under the hold. rest: what a lease holds from now on, or what is free of
-- it; NULL to keep what is left, 0 to end it. seconds: NULL as when the lease was made.
-- new_state: `settled` or `released`.
-- Returns the limit's state and the hold; `overrun` is what was added to `over_by`. No row for an
-- unknown hold. After a `fault` the caller rolls back.
-- Called by: app/usage/hold_statements.py
CREATE OR REPLACE FUNCTION settle_hold(
    wanted_tenant_id uuid, wanted_id uuid, wanted_kind text, new_state text, total bigint,
    rest bigint, seconds integer
) RETURNS TABLE (
    fault text, crossed smallint[], overrun bigint, most bigint, policy text, used bigint,
    held bigint, ends timestamptz, affords bigint, hold usage_holds
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    granted record;
    counter record;
    unlimited boolean;
    added bigint;  -- what was used since the last report
    own bigint;  -- what the hold still has
    paid bigint;  -- what the credits suffice for that the hold has, then what is taken of them
    counts bigint;
    balance record;
    keeps bigint;
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
    own := CASE WHEN hold.state = 'open' THEN hold.amount ELSE 0 END;
    held := held - own;
    crossed := '{}';
    overrun := 0;
    added := total - hold.counted - hold.over_by;
    fault := CASE
        WHEN hold.state IN ('settled', 'released')
            THEN CASE WHEN hold.state <> new_state OR added <> 0 THEN 'ended' END
        WHEN hold.expires_at <= now() - interval '24 hours' THEN 'ended'
        WHEN added < 0 THEN 'less'
        WHEN greatest(added, rest) > own
            AND used + held + greatest(added, rest) > 1000000000000000000 THEN 'too_large'
    END;
    IF fault IS NOT NULL OR hold.state IN ('settled', 'released') THEN
        RETURN NEXT;
        RETURN;
    END IF;
    unlimited := policy = 'soft' OR most = -1;
    counts := CASE
        WHEN (unlimited OR used + held + added <= most) AND coalesce(added <= paid + affords, true)
            THEN added
        WHEN hold.state = 'open' THEN least(added, own, paid + affords)
        ELSE least(
            added, CASE WHEN NOT unlimited THEN greatest(most - used - held, 0) END, paid + affords
        )
    END;
    IF hold.kind = 'lease' THEN
        counts := greatest(counts, least(added, most - used - held));
    END IF;
    overrun := added - counts;
    keeps := greatest(own - counts, 0);
    IF hold.state = 'expired' OR overrun > 0 OR rest = 0 OR counter.period_end <= now()
        OR NOT EXISTS (SELECT FROM tenants t WHERE t.id = hold.tenant_id AND t.is_active)
    THEN
        keeps := 0;
        hold.is_late := hold.state = 'expired';
        hold.state := new_state;
        hold.ended_at := now();
    ELSE
        IF rest IS NOT NULL THEN
            keeps := CASE
                WHEN unlimited THEN rest
                ELSE least(rest, greatest(keeps, most - used - counts - held))
            END;
        END IF;
        hold.expires_at := now() + coalesce(seconds, hold.ttl_seconds) * interval '1 second';
    END IF;
    paid := least(counts, paid + coalesce(affords, 0));  -- unlimited credits pay the rest
    crossed := count_usage(
        hold.tenant_id, hold.feature, hold.period_start,
        CASE WHEN hold.credits = hold.feature THEN counts - paid ELSE counts END, own - keeps, used,
        counter.announced,
        CASE WHEN granted.feature IS NULL THEN counter.announced_limit ELSE most END,
        coalesce(granted.warn_at, '{}')
    );
    IF hold.credits IS NOT NULL THEN
        PERFORM settle_credits(hold.tenant_id, hold.credits, wanted_id, paid * hold.rate);
        SELECT c.free / hold.rate INTO affords
            FROM tenant_credits(hold.tenant_id, hold.credits) c;
    END IF;
    used := used + counts;
    held := held + keeps;
    UPDATE usage_holds h SET
        state = hold.state, expires_at = hold.expires_at, ended_at = hold.ended_at,
        is_late = hold.is_late, counted = hold.counted + counts, over_by = hold.over_by + overrun,
        amount = CASE WHEN h.kind = 'lease' THEN keeps ELSE h.amount END,
        remaining = least(CASE WHEN most > -1 THEN greatest(most - used - held, 0) END, affords)
        WHERE h.tenant_id = hold.tenant_id AND h.id = wanted_id
        RETURNING h.* INTO hold;
    RETURN NEXT;
END
$$
