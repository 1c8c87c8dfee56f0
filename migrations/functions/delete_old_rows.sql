-- Delete a batch of old rows of a table from which the application's role may not delete.
--
-- Of the audit trail it deletes rows that no partition of a month has. It runs with the rights of the
-- owner.
--
-- wanted_table: `audit_events` or `email_events`. kept_days: 31 at least. Returns how many it deleted.
-- Called by: app/operations/retention.py
CREATE OR REPLACE FUNCTION delete_old_rows(wanted_table text, kept_days integer, batch_size integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target regclass;
    deleted bigint;
    total bigint := 0;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform deletes old rows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (kept_days BETWEEN 31 AND 36500) IS NOT TRUE THEN
        RAISE EXCEPTION 'rows are kept for 31 to 36500 days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF (batch_size BETWEEN 1 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION 'the batch size is 1 to 10000' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF (wanted_table IN ('audit_events', 'email_events')) IS NOT TRUE THEN
        RAISE EXCEPTION 'no such table has old rows' USING ERRCODE = 'undefined_table';
    END IF;
    FOREACH target IN ARRAY CASE wanted_table
        WHEN 'email_events' THEN ARRAY['public.email_events'::regclass]
        ELSE ARRAY[
            to_regclass('partitions.audit_events_first'),
            to_regclass('partitions.audit_events_default')
        ]
    END LOOP
        CONTINUE WHEN target IS NULL;  -- the first partition was dropped
        EXECUTE format(
            'DELETE FROM %1$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s'
            ' WHERE created_at < now() - $1 * interval ''1 day'' ORDER BY created_at LIMIT $2))',
            target
        ) USING kept_days, batch_size;
        GET DIAGNOSTICS deleted = ROW_COUNT;
        total := total + deleted;
    END LOOP;
    RETURN total;
END
$$
