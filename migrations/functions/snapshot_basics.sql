-- Find what a snapshot of a tenant's decisions has once: the tenant, the permissions of the product,
-- the roles of the tenant and the templates, and which of the required limits have something left.
--
-- Called by: app/access/snapshot.py
CREATE OR REPLACE FUNCTION snapshot_basics(wanted_tenant_id uuid)
RETURNS TABLE (tenant json, permissions json, roles json, limits json) LANGUAGE sql AS $$
    SELECT json_build_object(
            'id', t.id, 'slug', t.slug, 'idp_org_id', t.idp_org_id, 'is_active', t.is_active
        ), (
        SELECT coalesce(json_object_agg(p.key, json_build_object(
            'requires_flag', p.requires_flag, 'requires_limit', p.requires_limit
        )), '{}') FROM product_permissions p
    ), (
        SELECT json_agg(json_build_array(r.key, r.inherits, r.permissions))
        FROM roles r WHERE r.tenant_id = wanted_tenant_id OR r.tenant_id IS NULL
    ), (
        SELECT coalesce(json_object_agg(l.key, EXISTS (
            SELECT FROM consume_usage(
                wanted_tenant_id, ARRAY[l.key], ARRAY[1]::bigint[], ARRAY[NULL]::timestamptz[],
                ARRAY[NULL]::uuid[], false
            ) u WHERE u.fault IS NULL AND u.is_allowed
        )), '{}')
        FROM (SELECT DISTINCT p.requires_limit AS key FROM product_permissions p) l
        WHERE l.key IS NOT NULL
    )
    FROM tenants t WHERE t.id = wanted_tenant_id
$$
