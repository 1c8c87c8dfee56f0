-- Find who sends a request with an API key, and set the tenant scope of the transaction.
--
-- A revoked or expired key is not found. A key without a tenant has the scope of the platform.
-- `last_used_at` is written at most once a minute. SKIP LOCKED: no request waits for the write of
-- another.
--
-- wanted_digest: the digest of the key. Returns one row, or none.
-- Called by: app/auth/principals.py
CREATE OR REPLACE FUNCTION authenticate_key(wanted_digest text)
RETURNS TABLE (key_id uuid, tenant_id uuid, permissions text[], tenant_is_active boolean)
LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    RETURN QUERY
        SELECT k.id, k.tenant_id, k.permissions, t.is_active
        FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
        WHERE k.digest = wanted_digest AND k.revoked_at IS NULL
            AND (k.expires_at IS NULL OR k.expires_at > now());
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('app.tenant_id', coalesce(k.tenant_id::text, ''), true),
            set_config('app.platform', CASE WHEN k.tenant_id IS NULL THEN 'on' ELSE '' END, true)
        FROM api_keys k WHERE k.digest = wanted_digest;
    UPDATE api_keys SET last_used_at = now() WHERE id = (
        SELECT k.id FROM api_keys k
        WHERE k.digest = wanted_digest
            AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
        FOR UPDATE SKIP LOCKED
    );
END
$$
