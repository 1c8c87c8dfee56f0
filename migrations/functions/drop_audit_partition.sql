-- Drop the oldest partition of the audit trail if all its rows are older than `kept_days`.
--
-- It drops one, so that each drop is a short transaction. The files are deleted after the commit. It
-- runs with the rights of the owner.
--
-- kept_days: 31 at least. Returns the partition's name, or NULL.
-- Called by: app/operations/retention.py
CREATE OR REPLACE FUNCTION drop_audit_partition(kept_days integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    oldest regclass;
    name text;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform drops partitions' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (kept_days BETWEEN 31 AND 36500) IS NOT TRUE THEN
        RAISE EXCEPTION 'rows are kept for 31 to 36500 days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOCK TABLE ONLY public.audit_events IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT b.partition INTO oldest FROM partitions.bounds b
    WHERE b.whole = 'public.audit_events'::regclass
        AND b.below <= public.first_id_of(now() - kept_days * interval '1 day')
    ORDER BY b.below LIMIT 1;
    IF oldest IS NOT NULL THEN
        SELECT relname INTO name FROM pg_class WHERE oid = oldest;
        EXECUTE format('DROP TABLE %s', oldest);
    END IF;
    RETURN name;
END
$$
