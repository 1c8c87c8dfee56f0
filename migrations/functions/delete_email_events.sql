-- Delete a batch of e-mail events of these addresses. Runs with the rights of the owner.
--
-- Refused unless the tenant's deletion is due, or an erasure everywhere is recorded.
--
-- Returns how many rows it deleted.
-- Called by: app/privacy/tenants/deletion_statements.py, app/privacy/people/removal.py
CREATE OR REPLACE FUNCTION delete_email_events(wanted_tenant uuid, addresses text[], batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    deleted bigint;
BEGIN
    IF (public.is_deletion_due(wanted_tenant) OR public.may_erase(NULL)) IS NOT TRUE THEN
        RAISE EXCEPTION 'nothing to delete' USING ERRCODE = 'insufficient_privilege';
    END IF;
    DELETE FROM public.email_events WHERE id = ANY (ARRAY(
        SELECT e.id FROM public.email_events e WHERE e.address = ANY (addresses) LIMIT batch_size
    ));
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$
