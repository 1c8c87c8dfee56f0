-- List the roles that have these permissions, by themselves or by inheritance.
--
-- The roles are those of the tenant, and the templates. The owner has every permission of a product.
--
-- Called by: access_facts, find_permitted_members, find_permitted_resources, snapshot_basics
CREATE OR REPLACE FUNCTION granting_roles(wanted_tenant_id uuid, wanted_permissions text[])
RETURNS TABLE (permission text, role_id uuid, role_key text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE granting AS (
        SELECT p.key AS permission, r.id AS role_id, r.key AS role_key
        FROM roles r CROSS JOIN unnest(wanted_permissions) p (key)
        WHERE (r.tenant_id = wanted_tenant_id OR r.tenant_id IS NULL) AND (
            p.key = ANY (r.permissions)
            OR r.tenant_id IS NULL AND r.key = 'owner'
                AND EXISTS (SELECT FROM product_permissions known WHERE known.key = p.key)
        )
        UNION
        SELECT g.permission, r.id, r.key FROM granting g JOIN roles r ON r.inherits = g.role_key
            AND (r.tenant_id = wanted_tenant_id OR r.tenant_id IS NULL)
    )
    SELECT g.permission, g.role_id, g.role_key FROM granting g
$$
