-- List the members of whom a role has the permission on a resource, by the ids of their memberships.
--
-- Only active ones; at most 10,000 memberships after `after` are looked at.
-- Called by: access_candidates
CREATE OR REPLACE FUNCTION find_permitted_members(
    wanted_tenant_id uuid, wanted_permission text, wanted_type text, wanted_id text, after uuid,
    wanted_count integer
) RETURNS TABLE (place uuid, id uuid, idp_user_id text, email text) LANGUAGE sql STABLE AS $$
    WITH granting AS MATERIALIZED (
        SELECT g.role_id, g.role_key
        FROM granting_roles(wanted_tenant_id, ARRAY[wanted_permission]) g
    ), assigned AS MATERIALIZED (
        SELECT g.principal_id FROM access_grants g
        WHERE g.tenant_id = wanted_tenant_id AND g.assignment_id IS NOT NULL
            AND g.resource_type IS NULL AND g.role_id IN (SELECT role_id FROM granting)
        UNION ALL
        SELECT g.principal_id FROM resource_chain(wanted_tenant_id, wanted_type, wanted_id) c
        JOIN access_grants g ON g.resource_type = c.type AND g.resource_id = c.id
        WHERE g.tenant_id = wanted_tenant_id AND g.assignment_id IS NOT NULL
            AND g.role_id IN (SELECT role_id FROM granting)
    )
    SELECT m.id, u.id, u.idp_user_id, u.email FROM (
        SELECT m.id, m.user_id, m.role, m.is_active FROM memberships m
        WHERE m.tenant_id = wanted_tenant_id AND m.id > after
        ORDER BY m.id LIMIT 10000
    ) m
    JOIN users u ON u.tenant_id = wanted_tenant_id AND u.id = m.user_id
    WHERE m.is_active AND u.is_active AND (
        m.role IN (SELECT role_key FROM granting) OR m.id IN (SELECT principal_id FROM assigned)
    )
    ORDER BY m.id LIMIT wanted_count
$$
