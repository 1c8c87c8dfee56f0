-- Write the tenant's next base if enough has changed since the last one.
--
-- That is so many changes, or as many as that base has rows if these are more. So the bases have no
-- more rows than there are changes. Only before `ordered_position` no change can get a place any more.
--
-- The first base is due at the last of the rows that are older than their order (number < 0), if there
-- are any: so reads of a tenant that is older than the feature begin there.
--
-- Returns whether it has written one.
-- Called by: app/history/bases.py
CREATE OR REPLACE FUNCTION past.add_base(wanted_tenant uuid, least_changes integer)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    last_base bigint;
    next_base bigint;
BEGIN
    PERFORM past.lock_bases();
    SELECT max(b.position) INTO last_base FROM public.past_bases b WHERE b.tenant_id = wanted_tenant;
    SELECT p.position INTO next_base FROM public.audit_positions p
    WHERE p.tenant_id = wanted_tenant AND p.position > coalesce(last_base, -1)
        AND p.position < (SELECT f.ordered_position FROM public.event_feed f)
    ORDER BY p.position
    OFFSET greatest(least_changes, (
        SELECT count(*) FROM public.past_bases b
        WHERE b.tenant_id = wanted_tenant AND b.position = last_base
    )) - 1 LIMIT 1;
    IF last_base IS NULL THEN
        SELECT least(next_base, max(p.position)) INTO next_base FROM public.audit_positions p
        WHERE p.tenant_id = wanted_tenant AND p.number < 0
            AND p.position < (SELECT f.ordered_position FROM public.event_feed f);
    END IF;
    IF next_base IS NULL OR public.is_deletion_due(wanted_tenant) THEN
        RETURN false;
    END IF;
    PERFORM past.write_base(wanted_tenant, next_base, NULL);
    RETURN true;
END
$$
