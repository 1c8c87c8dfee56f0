-- Add the audit trail's partitions of this month and the next three. Runs with the rights of the owner.
--
-- The lock lets one transaction at a time change the partitions, and lets others use the table. A
-- month of which the default partition has rows already stays there: moving them would take a long
-- lock.
--
-- Returns how many it added.
-- Called by: app/operations/retention.py
CREATE OR REPLACE FUNCTION add_audit_partitions() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '200ms' AS $$
DECLARE
    month timestamptz;
    name text;
    low uuid;
    high uuid;
    added integer := 0;
BEGIN
    IF current_setting('app.platform', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'only the platform adds partitions' USING ERRCODE = 'insufficient_privilege';
    END IF;
    LOCK TABLE ONLY public.audit_events IN SHARE UPDATE EXCLUSIVE MODE;
    FOR month IN
        SELECT generate_series(date_trunc('month', now()), now() + interval '3 months', '1 month')
    LOOP
        name := 'audit_events_' || to_char(month, 'YYYY_MM');
        low := public.first_id_of(month);
        high := public.first_id_of(month + interval '1 month');
        CONTINUE WHEN EXISTS (
            SELECT FROM partitions.bounds b
            WHERE b.whole = 'public.audit_events'::regclass AND b.below >= high
        ) OR EXISTS (
            SELECT FROM partitions.audit_events_default d WHERE d.id >= low AND d.id < high
        );
        EXECUTE format('CREATE TABLE partitions.%I (LIKE public.audit_events)', name);
        PERFORM partitions.protect(format('partitions.%I', name)::regclass);
        EXECUTE format(
            'ALTER TABLE public.audit_events ATTACH PARTITION partitions.%I'
            ' FOR VALUES FROM (%L) TO (%L)', name, low, high
        );
        added := added + 1;
    END LOOP;
    RETURN added;
END
$$
