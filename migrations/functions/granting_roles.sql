-- List the roles that have these permissions, by themselves or by inheritance.
--
-- The roles are those of the tenant, and the templates. The owner has every permission of a product.
--
-- Called by: access_facts, find_permitted_members, find_permitted_resources
CREATE OR REPLACE FUNCTION granting_roles(wanted_tenant_id uuid, wanted_permissions text[])
RETURNS TABLE (permission text, role_id uuid, role_key text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE known AS MATERIALIZED (
        SELECT r.id, r.key, r.inherits, r.permissions, false AS is_owner
        FROM roles r WHERE r.tenant_id = wanted_tenant_id
        UNION ALL
        SELECT r.id, r.key, r.inherits, r.permissions, r.key = 'owner'
        FROM roles r WHERE r.tenant_id IS NULL
    ), granting AS (
        SELECT p.key AS permission, k.id AS role_id, k.key AS role_key
        FROM known k CROSS JOIN unnest(k.permissions) p (key)
        WHERE p.key = ANY (wanted_permissions)
        UNION
        SELECT p.key, k.id, k.key
        FROM known k CROSS JOIN product_permissions p
        WHERE k.is_owner AND p.key = ANY (wanted_permissions)
    ), inherited AS (
        SELECT g.permission, g.role_id, g.role_key FROM granting g
        UNION
        SELECT i.permission, k.id, k.key FROM inherited i JOIN known k ON k.inherits = i.role_key
    )
    SELECT i.permission, i.role_id, i.role_key FROM inherited i
$$
