-- The least UUIDv7 of a moment (RFC 9562): its milliseconds, then zeros.
--
-- Called by: app/events/positions.py, add_audit_partitions, drop_audit_partition
CREATE OR REPLACE FUNCTION first_id_of(moment timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT rpad(
        lpad(to_hex(greatest(0, floor(extract(epoch FROM moment) * 1000))::bigint), 12, '0'), 32, '0'
    )::uuid
$$
