-- List the permissions of the product that the principal's roles have on a resource.
--
-- Called by: access_candidates
CREATE OR REPLACE FUNCTION find_held_permissions(
    wanted_tenant_id uuid, wanted_principal_id uuid, wanted_type text, wanted_id text, after text,
    wanted_count integer
) RETURNS TABLE (place text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE known AS MATERIALIZED (
        SELECT r.id, r.key, r.inherits, r.permissions FROM roles r
        WHERE r.tenant_id = wanted_tenant_id
        UNION ALL
        SELECT r.id, r.key, r.inherits, r.permissions FROM roles r WHERE r.tenant_id IS NULL
    ), held AS (
        SELECT g.role_id FROM access_grants g
        WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
            AND g.resource_type IS NULL
        UNION
        SELECT g.role_id FROM resource_chain(wanted_tenant_id, wanted_type, wanted_id) c
        JOIN access_grants g ON g.resource_type = c.type AND g.resource_id = c.id
        WHERE g.tenant_id = wanted_tenant_id AND g.principal_id = wanted_principal_id
    ), effective AS (
        SELECT k.key, k.inherits, k.permissions FROM known k JOIN held h ON h.role_id = k.id
        UNION
        SELECT k.key, k.inherits, k.permissions
        FROM effective e JOIN known k ON k.key = e.inherits
    )
    SELECT p.key FROM product_permissions p
    WHERE p.key > after AND (
        EXISTS (SELECT FROM effective e WHERE e.key = 'owner')
        OR p.key IN (SELECT unnest(e.permissions) FROM effective e)
    )
    ORDER BY p.key LIMIT wanted_count
$$
