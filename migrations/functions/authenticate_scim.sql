-- Find the SCIM connection of a token or an OAuth access token, and set the tenant scope.
--
-- Tenants own the table, so the token is looked up in the scope of the platform.
--
-- wanted_digest: the digest of the token. Returns one row, or none.
-- Called by: app/scim/access.py
CREATE OR REPLACE FUNCTION authenticate_scim(wanted_digest text)
RETURNS TABLE (
    id uuid, tenant_id uuid, acts_as text, status text, default_role text, group_roles json,
    deactivate text, tenant_is_active boolean
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('app.platform', 'on', true), set_config('app.tenant_id', '', true);
    SELECT c.id, c.tenant_id, c.acts_as, c.status, c.default_role, c.group_roles, c.deactivate,
            t.is_active
        INTO id, tenant_id, acts_as, status, default_role, group_roles, deactivate,
            tenant_is_active
        FROM scim_connections c JOIN tenants t ON t.id = c.tenant_id
        WHERE c.digest = wanted_digest
            OR (c.old_digest = wanted_digest AND c.old_expires_at > now())
            OR (c.tenant_id, c.id) = (
                SELECT a.tenant_id, a.connection_id FROM scim_access_tokens a
                WHERE a.digest = wanted_digest AND a.expires_at > now()
            );
    PERFORM set_config('app.platform', '', true),
        set_config('app.tenant_id', coalesce(authenticate_scim.tenant_id::text, ''), true);
    IF authenticate_scim.id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$
