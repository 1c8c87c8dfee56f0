-- Decide for each entry whether the limit allows it, and count what is allowed.
--
-- Entries are taken in the order of their features, so that two calls do not wait for each other. A
-- digest of an idempotency key that was counted within 24 hours is allowed and not counted again,
-- also if its moment is in the last period. A use that takes credits is allowed if both have room.
-- Balances of credits are locked before counters, those of several entries before all.
--
-- moments: an entry must be in the current period. digests: NULL without an idempotency key.
-- is_counted: false only decides.
-- Returns a row for each entry, by `place`. `affords` is what the `credits` suffice for. No row for an
-- unknown tenant. After a `fault` the caller rolls back.
-- Called by: app/usage/statements.py, access_facts, snapshot_basics
CREATE OR REPLACE FUNCTION consume_usage(
    wanted_tenant_id uuid, features text[], amounts bigint[], moments timestamptz[],
    digests uuid[], is_counted boolean
) RETURNS TABLE (
    place bigint, fault text, is_allowed boolean, feature text, most bigint, policy text,
    used bigint, held bigint, ends timestamptz, crossed smallint[],
    credits text, affords bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    entry record;
    granted record;
    counter record;
    is_active boolean;
    is_new boolean;
    stored_amount bigint;
    balance_most bigint;
    balance_free bigint;
    balance_ends timestamptz;
BEGIN
    SELECT t.is_active INTO is_active FROM tenants t WHERE t.id = wanted_tenant_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF is_counted AND cardinality(features) > 1 THEN
        PERFORM refresh_credits(wanted_tenant_id, b.credits) FROM (
            SELECT DISTINCT l.credits COLLATE "C" AS credits
            FROM tenant_limits(wanted_tenant_id, NULL) l
            WHERE l.feature = ANY (features) AND l.credits IS NOT NULL
            ORDER BY 1
        ) b;
    END IF;
    FOR entry IN
        SELECT * FROM unnest(features, amounts, moments, digests)
            WITH ORDINALITY AS e (feature, amount, moment, digest, place)
        ORDER BY e.feature COLLATE "C", e.place
    LOOP
        place := entry.place;
        feature := entry.feature;
        crossed := '{}';
        SELECT * INTO granted FROM tenant_limits(wanted_tenant_id, entry.feature);
        fault := CASE
            WHEN NOT FOUND THEN 'unknown'
            WHEN is_counted AND feature = 'seats' THEN 'seats'
            WHEN entry.amount < 0 AND (granted.period <> 'none' OR granted.credits = feature)
                THEN 'negative'
            WHEN NOT is_active THEN 'suspended'
        END;
        IF fault IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        credits := granted.credits;
        affords := NULL;
        IF credits IS NOT NULL THEN
            IF is_counted THEN
                SELECT b.most, b.free, b.ends INTO balance_most, balance_free, balance_ends
                    FROM refresh_credits(wanted_tenant_id, granted.credits) b;
            ELSE
                SELECT b.most, b.free, b.ends INTO balance_most, balance_free, balance_ends
                    FROM tenant_credits(wanted_tenant_id, granted.credits) b;
            END IF;
            affords := balance_free / granted.rate;
        END IF;
        IF is_counted THEN
            SELECT * INTO counter FROM lock_usage(wanted_tenant_id, feature, granted.period);
        ELSE
            SELECT * INTO counter FROM tenant_usage(wanted_tenant_id, feature);
        END IF;
        most := granted.most;
        policy := granted.policy;
        used := counter.used;
        held := counter.held;
        ends := counter.ends;
        IF credits = feature AND affords IS NOT NULL THEN
            most := balance_most;
            held := least(held, balance_most - balance_free);
            used := balance_most - balance_free - held;
            ends := balance_ends;
        END IF;
        is_allowed := CASE
            WHEN entry.amount < 0 THEN used + entry.amount >= 0
            WHEN entry.amount > affords THEN false
            ELSE policy = 'soft' OR most = -1 OR used + held + entry.amount <= most
        END;
        is_new := entry.digest IS NULL;
        IF NOT is_new AND is_counted AND is_allowed THEN
            INSERT INTO usage_keys (tenant_id, digest, amount, created_at)
                VALUES (wanted_tenant_id, entry.digest, entry.amount, now())
                ON CONFLICT (tenant_id, digest) DO UPDATE
                SET amount = excluded.amount, created_at = excluded.created_at
                WHERE usage_keys.created_at <= now() - interval '24 hours';
            is_new := FOUND;
        END IF;
        IF NOT is_new THEN
            SELECT k.amount INTO stored_amount FROM usage_keys k
                WHERE k.tenant_id = wanted_tenant_id AND k.digest = entry.digest
                    AND k.created_at > now() - interval '24 hours';
            is_new := NOT FOUND;
            is_allowed := is_allowed OR FOUND;
        END IF;
        fault := CASE
            WHEN NOT is_new THEN CASE WHEN stored_amount <> entry.amount THEN 'reused' END
            WHEN entry.moment < counter.starts OR entry.moment >= ends THEN 'at'
            WHEN used + entry.amount > 1000000000000000000 THEN 'too_large'
        END;
        IF is_counted AND is_allowed AND is_new AND fault IS NULL THEN
            IF entry.amount > 0 AND affords IS NOT NULL THEN
                PERFORM burn_credits(
                    wanted_tenant_id, granted.credits, entry.amount * granted.rate, NULL, NULL
                );
                affords := affords - entry.amount;
            END IF;
            IF credits IS DISTINCT FROM feature OR affords IS NULL THEN
                crossed := count_usage(
                    wanted_tenant_id, entry.feature, counter.starts, entry.amount, 0, used,
                    counter.announced, most, granted.warn_at
                );
            END IF;
            used := used + entry.amount;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$
