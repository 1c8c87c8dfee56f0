-- List the members of whom a role has the permission on a resource, by the ids of their memberships.
--
-- Only active ones; at most 10,000 memberships after `after` are looked at, and of assignments those
-- of these memberships and of groups.
-- Called by: access_candidates
CREATE OR REPLACE FUNCTION find_permitted_members(
    wanted_tenant_id uuid, wanted_permission text, wanted_type text, wanted_id text, after uuid,
    wanted_count integer
) RETURNS TABLE (place uuid, id uuid, idp_user_id text, email text) LANGUAGE sql STABLE AS $$
    WITH granting AS MATERIALIZED (
        SELECT g.role_id, g.role_key
        FROM granting_roles(wanted_tenant_id, ARRAY[wanted_permission]) g
    ), seen AS MATERIALIZED (
        SELECT m.id, m.user_id, m.role, m.is_active FROM memberships m
        WHERE m.tenant_id = wanted_tenant_id AND m.id > after
        ORDER BY m.id LIMIT 10000
    ), last AS MATERIALIZED (
        SELECT s.id FROM seen s ORDER BY s.id DESC LIMIT 1
    ), places AS MATERIALIZED (
        SELECT g.role_id, c.type, c.id FROM granting g
        CROSS JOIN resource_chain(wanted_tenant_id, wanted_type, wanted_id) c
    ), assigned AS (  -- an index has the memberships that have a role in a place, in their order
        SELECT a.* FROM granting g CROSS JOIN LATERAL (
            SELECT a.membership_id, a.group_id, a.expires_at FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.resource_type IS NULL
                AND a.resource_id IS NULL AND a.role_id = g.role_id
                AND a.membership_id > after AND a.membership_id <= (SELECT l.id FROM last l)
            UNION ALL
            SELECT a.membership_id, a.group_id, a.expires_at FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.resource_type IS NULL
                AND a.resource_id IS NULL AND a.role_id = g.role_id AND a.membership_id IS NULL
            OFFSET 0
        ) a
        UNION ALL
        SELECT a.* FROM places p CROSS JOIN LATERAL (
            SELECT a.membership_id, a.group_id, a.expires_at FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.resource_type = p.type
                AND a.resource_id = p.id AND a.role_id = p.role_id
                AND a.membership_id > after AND a.membership_id <= (SELECT l.id FROM last l)
            UNION ALL
            SELECT a.membership_id, a.group_id, a.expires_at FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.resource_type = p.type
                AND a.resource_id = p.id AND a.role_id = p.role_id AND a.membership_id IS NULL
            OFFSET 0
        ) a
    ), granted AS MATERIALIZED (
        SELECT a.membership_id, a.group_id FROM assigned a
        WHERE a.expires_at IS NULL OR a.expires_at > now()
    ), groups AS MATERIALIZED (
        SELECT g.group_id FROM granted g WHERE g.group_id IS NOT NULL
    )
    SELECT m.id, u.id, u.idp_user_id, u.email FROM seen m
    JOIN users u ON u.tenant_id = wanted_tenant_id AND u.id = m.user_id
    WHERE m.is_active AND u.is_active AND (
        m.role IN (SELECT g.role_key FROM granting g)
        OR m.id IN (SELECT g.membership_id FROM granted g WHERE g.membership_id IS NOT NULL)
        OR (SELECT count(*) FROM groups) > 0 AND EXISTS (
            SELECT FROM scim_members s WHERE s.tenant_id = wanted_tenant_id
                AND s.user_id = m.user_id AND s.group_id IN (SELECT g.group_id FROM groups g)
        )
    )
    ORDER BY m.id LIMIT wanted_count
$$
