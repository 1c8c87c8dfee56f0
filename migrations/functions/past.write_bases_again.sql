-- Read rows of a tenant from the trail again, for each of its bases.
--
-- A row stays as it is where its creation is no longer in the trail, and no earlier base has it.
-- Called by: app/privacy/people/redaction.py
CREATE OR REPLACE FUNCTION past.write_bases_again(wanted_tenant uuid, row_ids uuid[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    base bigint;
BEGIN
    FOR base IN
        SELECT b.position FROM public.past_bases b
        WHERE b.tenant_id = wanted_tenant AND b.target_type = '' ORDER BY b.position
    LOOP
        PERFORM past.write_base(wanted_tenant, base, row_ids);
    END LOOP;
END
$$
