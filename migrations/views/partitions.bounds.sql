-- The upper bound of each partition; NULL for the default one.
--
-- Called by: add_audit_partitions, drop_audit_partition
CREATE OR REPLACE VIEW partitions.bounds AS
SELECT inhparent::regclass AS whole, inhrelid::regclass AS partition,
    (regexp_match(pg_get_expr(relpartbound, inhrelid), 'TO \(''(.+)''\)'))[1]::uuid AS below
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE relnamespace = 'partitions'::regnamespace AND relkind = 'r'
