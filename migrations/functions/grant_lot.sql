-- Grant credits to a tenant, as a lot of their own, if its plan has them and the balance has room.
--
-- All grants that have not expired can have at most 10^18 credits. At most 1000 lots that the plan has
-- not granted have credits left, because one use may take from all.
--
-- starts: in the past or NULL means now. expires: NULL: never.
-- Returns the id of the lot. After a `fault` the caller rolls back.
-- Called by: app/credits/statements.py
CREATE OR REPLACE FUNCTION grant_lot(
    wanted_tenant_id uuid, wanted_feature text, amount bigint, new_source text,
    new_priority bigint, starts timestamptz, expires timestamptz, new_reference text,
    OUT fault text, OUT id uuid
) LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    PERFORM refresh_credits(wanted_tenant_id, l.feature)
        FROM tenant_limits(wanted_tenant_id, wanted_feature) l WHERE l.credits = l.feature;
    IF NOT FOUND THEN
        fault := 'unknown';
        RETURN;
    END IF;
    SELECT coalesce(sum(l.granted), 0) AS granted,
            count(*) FILTER (WHERE l.remaining > 0 AND l.period_start IS NULL) AS lots
        INTO known FROM credit_lots l
        WHERE l.tenant_id = wanted_tenant_id AND l.feature = wanted_feature
            AND coalesce(l.expires_at, 'infinity') > now();
    fault := CASE
        WHEN known.granted + amount > 1000000000000000000 THEN 'too_large'
        WHEN known.lots >= 1000 THEN 'too_many'
        WHEN expires <= greatest(starts, clock_timestamp()) THEN 'ends'
    END;
    IF fault IS NULL THEN
        id := grant_credits(
            wanted_tenant_id, wanted_feature, amount, new_source, new_priority,
            greatest(starts, now()), expires, NULL, new_reference
        );
    END IF;
END
$$
