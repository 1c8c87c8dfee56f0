-- Delete a batch of rows of a tenant whose deletion is due. Runs with the rights of the owner.
--
-- Only an index leads past the rows that earlier batches have deleted, without reading them again.
-- The condition on `tenant_id` is repeated because `ctid` is unique in one partition only.
--
-- wanted_table: a table with the column `tenant_id`. batch_size: 1 to 10000.
-- Returns how many rows it deleted.
-- Called by: app/privacy/tenants/deletion_statements.py
CREATE OR REPLACE FUNCTION delete_tenant_batch(wanted_tenant uuid, wanted_table text, batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    deleted bigint;
BEGIN
    IF public.is_deletion_due(wanted_tenant) IS NOT TRUE THEN
        RAISE EXCEPTION 'no deletion of this tenant is due' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname = wanted_table
            AND c.relkind IN ('r', 'p') AND a.attname = 'tenant_id' AND a.atttypid = 'uuid'::regtype
    ) THEN
        RAISE EXCEPTION 'no table of tenants has this name' USING ERRCODE = 'undefined_table';
    END IF;
    IF (batch_size BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'the batch size is 1 to 10000' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format(
        'DELETE FROM public.%1$I WHERE tenant_id = $1 AND ctid = ANY (ARRAY('
        'SELECT ctid FROM public.%1$I WHERE tenant_id = $1 LIMIT $2))',
        wanted_table
    ) USING wanted_tenant, batch_size;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$
