-- Find what a snapshot of a tenant's decisions has once: the tenant, the permissions of the service
-- and the product, the roles with these permissions, also inherited ones, and which of the required
-- limits have something left.
--
-- service: the permissions of the service that a tenant can have.
-- Called by: app/access/snapshot.py
CREATE OR REPLACE FUNCTION snapshot_basics(wanted_tenant_id uuid, service text[])
RETURNS TABLE (tenant json, permissions json, roles json, limits json) LANGUAGE sql AS $$
    WITH granting AS MATERIALIZED (
        SELECT g.role_id, g.permission FROM granting_roles(
            wanted_tenant_id, service || ARRAY(SELECT p.key FROM product_permissions p)
        ) g
    )
    SELECT json_build_object(
            'id', t.id, 'slug', t.slug, 'idp_org_id', t.idp_org_id, 'is_active', t.is_active
        ), (
        SELECT json_object_agg(p.key, json_build_object(
            'requires_flag', p.requires_flag, 'requires_limit', p.requires_limit
        )) FROM (
            SELECT p.key, p.requires_flag, p.requires_limit FROM product_permissions p
            UNION ALL
            SELECT key, NULL, NULL FROM unnest(service) key
        ) p
    ), (
        SELECT json_object_agg(r.key, ARRAY(
            SELECT g.permission FROM granting g WHERE g.role_id = r.id ORDER BY g.permission
        ))
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
