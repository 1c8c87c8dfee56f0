-- Find the setup link of a browser's session, and set the tenant scope.
--
-- Tenants own the table, so the session is looked up in the scope of the platform.
--
-- wanted_digest: the digest of the session's secret. Returns one row, or none if the link is unknown,
-- revoked or expired. That of a suspended tenant is found too.
-- Called by: app/auth/setup_sessions.py
CREATE OR REPLACE FUNCTION authenticate_setup_link(wanted_digest text)
RETURNS TABLE (
    id uuid, tenant_id uuid, tenant_name text, idp_org_id text, tenant_is_active boolean, digest text,
    scopes text[], expires_at timestamptz
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('app.platform', 'on', true), set_config('app.tenant_id', '', true);
    SELECT l.id, l.tenant_id, t.name, t.idp_org_id, t.is_active, l.digest, l.scopes, l.expires_at
        INTO id, tenant_id, tenant_name, idp_org_id, tenant_is_active, digest, scopes, expires_at
        FROM setup_links l JOIN tenants t ON t.id = l.tenant_id
        WHERE l.session_digest = wanted_digest AND l.revoked_at IS NULL AND l.expires_at > now();
    PERFORM set_config('app.platform', '', true),
        set_config('app.tenant_id', coalesce(authenticate_setup_link.tenant_id::text, ''), true);
    IF authenticate_setup_link.id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$
