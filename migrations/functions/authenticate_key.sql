-- Find who sends a request with an API key, and set the tenant scope of the transaction.
--
-- A revoked or expired key is not found. A key without a tenant has the scope of the platform.
-- `assigned` has the permissions of the roles that are assigned to the key, those of products too,
-- and `role` is `owner` if one of these roles is. `last_used_at` is written at most once a minute.
-- SKIP LOCKED: no request waits for the write of another.
--
-- wanted_digest: the digest of the key. Returns one row, or none.
-- Called by: app/auth/principals.py
CREATE OR REPLACE FUNCTION authenticate_key(wanted_digest text)
RETURNS TABLE (
    key_id uuid,
    tenant_id uuid,
    permissions text[],
    tenant_is_active boolean,
    role text,
    assigned text[]
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    SELECT k.id, k.tenant_id, k.permissions, t.is_active
        INTO key_id, tenant_id, permissions, tenant_is_active
        FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
        WHERE k.digest = wanted_digest AND k.revoked_at IS NULL
            AND (k.expires_at IS NULL OR k.expires_at > now());
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('app.tenant_id', coalesce(tenant_id::text, ''), true),
            set_config('app.platform', CASE WHEN tenant_id IS NULL THEN 'on' ELSE '' END, true);
    IF EXISTS (
        SELECT FROM role_assignments a WHERE a.tenant_id = authenticate_key.tenant_id
    ) THEN
        SELECT max(r.role) FILTER (WHERE r.role = 'owner'), array_agg(p) INTO role, assigned
            FROM assigned_roles(tenant_id, NULL, NULL, key_id) r
            LEFT JOIN LATERAL unnest(r.permissions) p ON true;
    END IF;
    UPDATE api_keys SET last_used_at = now() WHERE id = (
        SELECT k.id FROM api_keys k
        WHERE k.digest = wanted_digest
            AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
        FOR UPDATE SKIP LOCKED
    );
    RETURN NEXT;
END
$$
