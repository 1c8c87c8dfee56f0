-- Give a partition the row-level security of every tenant-owned table.
--
-- The application's role may not use the schema `partitions`. Its statements on the whole table need
-- no right to partitions, and only the policy of the whole table applies to them.
--
-- Called by: add_audit_partitions
CREATE OR REPLACE FUNCTION partitions.protect(partition regclass) RETURNS void LANGUAGE plpgsql AS $protect$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', partition);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', partition);
    EXECUTE format($policy$
CREATE POLICY tenant_isolation ON %s
USING (
    tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
    OR (SELECT current_setting('app.platform', true) = 'on')
)
$policy$, partition);
END
$protect$
