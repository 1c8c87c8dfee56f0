-- Lock a balance of credits, and bring it up to date.
--
-- Expired holds give back what they took, expired lots lose what is left of them, and the plan grants
-- what is missing of its value in the current period. So a higher value adds the difference, and a
-- lower one takes nothing. Of older grants of the plan only `rollover_cap` is left, if there is one.
-- All work with a balance first locks it here, before any counter.
--
-- Returns what tenant_credits does.
-- Called by: consume_usage, grant_lot, hold_usage, lock_hold, refresh_tenant_credits
CREATE OR REPLACE FUNCTION refresh_credits(
    wanted_tenant_id uuid, wanted_feature text,
    OUT most bigint, OUT free bigint, OUT starts timestamptz, OUT ends timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    balance credit_balances;
    plan record;
    given bigint := 0;
    excess bigint;
    lot record;
BEGIN
    LOOP
        SELECT b.* INTO balance FROM credit_balances b
            WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature
            FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO credit_balances (tenant_id, feature, balance, due_at, told)
            VALUES (wanted_tenant_id, wanted_feature, 0, now(), '{}')
            ON CONFLICT DO NOTHING;
    END LOOP;
    SELECT l.most, l.period, l.metering ->> 'rollover' AS rollover,
            (l.metering ->> 'rollover_cap')::bigint AS cap
        INTO plan FROM tenant_limits(wanted_tenant_id, wanted_feature) l
        WHERE l.credits = wanted_feature;
    IF FOUND THEN
        SELECT u.starts, u.ends INTO starts, ends
            FROM lock_usage(wanted_tenant_id, wanted_feature, plan.period) u;
        UPDATE credit_balances b SET period_start = starts
            WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature
                AND b.period_start IS DISTINCT FROM starts;
    END IF;
    PERFORM settle_credits(wanted_tenant_id, wanted_feature, h.hold_id, 0)
        FROM (
            SELECT DISTINCT e.hold_id FROM (  -- a hold may just be extended
                SELECT h.hold_id FROM credit_holds h
                WHERE h.tenant_id = wanted_tenant_id AND h.feature = wanted_feature
                    AND h.expires_at <= now()
                ORDER BY h.hold_id, h.lot_id
                FOR UPDATE
            ) e
        ) h;
    IF balance.due_at <= clock_timestamp() THEN
        PERFORM post_credits(wanted_tenant_id, l.id, 'expire', -l.remaining, NULL, NULL)
            FROM (
                SELECT l.id, l.remaining FROM credit_lots l
                WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature
                    AND l.remaining > 0
                    AND coalesce(l.expires_at, 'infinity') <= clock_timestamp()
                ORDER BY l.expires_at, l.id
            ) l;
    END IF;
    IF plan.most > -1 THEN
        SELECT coalesce(sum(l.granted) FILTER (WHERE l.period_start = starts), 0),
                sum(l.remaining) FILTER (WHERE l.period_start < starts) - plan.cap
            INTO given, excess
            FROM credit_lots l
            WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature
                AND coalesce(l.expires_at, 'infinity') > now();
        IF excess > 0 THEN
            FOR lot IN
                SELECT l.id, l.remaining FROM credit_lots l
                WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature
                    AND l.remaining > 0 AND l.period_start < starts
                ORDER BY l.period_start, l.created_at, l.id
            LOOP
                PERFORM post_credits(
                    wanted_tenant_id, lot.id, 'expire', -least(excess, lot.remaining), NULL, NULL
                );
                excess := excess - least(excess, lot.remaining);
                EXIT WHEN excess = 0;
            END LOOP;
        END IF;
        IF plan.most > given THEN
            PERFORM grant_credits(
                wanted_tenant_id, wanted_feature, plan.most - given, 'plan', 100,
                CASE WHEN starts = 'epoch' THEN date_trunc('day', now(), 'UTC') ELSE starts END,
                CASE WHEN coalesce(plan.rollover, 'none') = 'none' THEN ends END, starts, NULL
            );
        END IF;
    END IF;
    IF balance.due_at <= clock_timestamp() OR plan.most > given THEN
        UPDATE credit_balances b SET due_at = least(
            (
                SELECT min(l.expires_at) FROM credit_lots l
                WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature
                    AND l.remaining > 0
            ), (
                SELECT min(h.expires_at) FROM credit_holds h
                WHERE h.tenant_id = wanted_tenant_id AND h.feature = wanted_feature
            ), CASE WHEN plan.most > 0 THEN ends END
        ) WHERE b.tenant_id = wanted_tenant_id AND b.feature = wanted_feature;
    END IF;
    SELECT c.most, c.free, c.starts, c.ends INTO most, free, starts, ends
        FROM tenant_credits(wanted_tenant_id, wanted_feature) c;
END
$$
