-- The roles that assignments for the whole tenant give a member or an API key now, with the
-- permissions that they inherit. The caller checks that the member or the key is active.
--
-- wanted_membership_id, wanted_user_id: the member, who also has the roles of their groups; or NULL.
-- wanted_key_id: the API key; or NULL.
-- Called by: authenticate_key, authenticate_user, app/access/service.py, app/memberships/owners.py
CREATE OR REPLACE FUNCTION assigned_roles(
    wanted_tenant_id uuid, wanted_membership_id uuid, wanted_user_id uuid, wanted_key_id uuid
) RETURNS TABLE (assignment_id uuid, role text, permissions text[])
LANGUAGE sql STABLE ROWS 10 AS $$
    WITH RECURSIVE chain AS (
        SELECT a.id, r.key AS first_key, r.permissions, r.inherits, 1 AS length
        FROM (
            SELECT own.* FROM role_assignments own
            WHERE own.tenant_id = wanted_tenant_id AND own.membership_id = wanted_membership_id
            UNION ALL
            SELECT own.* FROM role_assignments own
            WHERE own.tenant_id = wanted_tenant_id AND own.api_key_id = wanted_key_id
            UNION ALL
            SELECT of_group.* FROM scim_members m
            JOIN role_assignments of_group
                ON of_group.tenant_id = m.tenant_id AND of_group.group_id = m.group_id
            WHERE m.tenant_id = wanted_tenant_id AND m.user_id = wanted_user_id
        ) AS a
        JOIN roles r ON r.id = a.role_id AND (r.tenant_id = a.tenant_id OR r.tenant_id IS NULL)
        WHERE a.resource_type IS NULL AND (a.expires_at IS NULL OR a.expires_at > now())
        UNION ALL
        SELECT c.id, c.first_key, r.permissions, r.inherits, c.length + 1
        FROM chain c
        JOIN roles r ON r.key = c.inherits
            AND (r.tenant_id = wanted_tenant_id OR r.tenant_id IS NULL)
        WHERE c.length < 5
    )
    SELECT c.id, c.first_key, array_agg(p) FILTER (WHERE p IS NOT NULL)
    FROM chain c LEFT JOIN LATERAL unnest(c.permissions) p ON true
    GROUP BY c.id, c.first_key
$$
