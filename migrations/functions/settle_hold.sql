-- Count what was used under a hold or a lease, and end it or change what it holds.
--
-- It counts in the period in which the hold was made; counted_part decides how much. The rest is
-- `over_by`, and the hold ends. An expired hold has nothing: for 24 hours, what fits is counted. The same
-- total again changes nothing. A lease ends with its period, and if the tenant is suspended. Credits
-- are taken from the lots that the hold has taken them from.
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
    known record;
    added bigint;  -- what was used since the last report
    own bigint;  -- what the hold still has
    counts bigint;
    keeps bigint;
    pays bigint;  -- of what counts, by credits; unlimited ones leave the rest to the counter
BEGIN
    SELECT * INTO known FROM lock_hold(wanted_tenant_id, wanted_id, wanted_kind);
    IF known.used IS NULL THEN
        RETURN;
    END IF;
    hold := known.hold;
    most := known.most;
    policy := known.policy;
    used := known.used;
    held := known.held;
    ends := known.ends;
    affords := known.affords;
    crossed := '{}';
    overrun := 0;
    own := CASE WHEN hold.state = 'open' THEN hold.amount ELSE 0 END;
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
    counts := counted_part(
        hold.kind, hold.state = 'open', added, own, known.free, known.paid + known.affords
    );
    overrun := added - counts;
    IF hold.state = 'expired' OR overrun > 0 OR rest = 0 OR known.is_over
        OR NOT EXISTS (SELECT FROM tenants t WHERE t.id = hold.tenant_id AND t.is_active)
    THEN
        keeps := 0;
        hold.is_late := hold.state = 'expired';
        hold.state := new_state;
        hold.ended_at := now();
    ELSE
        keeps := greatest(own - counts, 0);
        IF rest IS NOT NULL THEN
            keeps := least(rest, greatest(keeps, known.free - counts));
        END IF;
        hold.expires_at := now() + coalesce(seconds, hold.ttl_seconds) * interval '1 second';
    END IF;
    pays := least(counts, known.paid + coalesce(affords, 0));
    crossed := count_usage(
        hold.tenant_id, hold.feature, hold.period_start,
        CASE WHEN hold.credits = hold.feature THEN counts - pays ELSE counts END, own - keeps, used,
        known.announced, known.announced_limit, known.warn_at
    );
    IF hold.credits IS NOT NULL THEN
        PERFORM settle_credits(hold.tenant_id, hold.credits, wanted_id, pays * hold.rate);
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
