-- Find the SCIM connection of an OAuth client, and set the tenant scope of the transaction.
--
-- Tenants own the table, so the client is looked up in the scope of the platform.
--
-- Returns one row, or none.
-- Called by: app/connections/clients.py
CREATE OR REPLACE FUNCTION find_scim_client(client_id uuid)
RETURNS TABLE (
    id uuid, tenant_id uuid, status text, digest text, old_digest text, public_keys json
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('app.platform', 'on', true), set_config('app.tenant_id', '', true);
    SELECT c.id, c.tenant_id, c.status, c.digest,
            CASE WHEN c.old_expires_at > now() THEN c.old_digest END, c.public_keys
        INTO id, tenant_id, status, digest, old_digest, public_keys
        FROM scim_connections c WHERE c.id = client_id;
    PERFORM set_config('app.platform', '', true),
        set_config('app.tenant_id', coalesce(find_scim_client.tenant_id::text, ''), true);
    IF find_scim_client.id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$
