-- The keys of the roles that assignments give a member or an API key, for the tenant and for places.
--
-- wanted_membership_id, wanted_user_id: the member, who also has the roles of their groups; or NULL.
-- wanted_key_id: the API key; or NULL. until: an assignment counts if it has no end, or holds then.
-- types, ids: the places. Waiting for a lock may have taken a while, so the time is that of the clock.
-- Called by: app/roles/authority.py
CREATE OR REPLACE FUNCTION held_role_keys(
    wanted_tenant_id uuid, wanted_membership_id uuid, wanted_user_id uuid, wanted_key_id uuid,
    until timestamptz, types text[], ids text[]
) RETURNS text[] LANGUAGE sql STABLE AS $$
    WITH targets AS MATERIALIZED (
        SELECT wanted_membership_id AS membership_id, NULL::uuid AS group_id,
            wanted_key_id AS api_key_id
        UNION ALL
        SELECT NULL, s.group_id, NULL FROM scim_members s
        WHERE s.tenant_id = wanted_tenant_id AND s.user_id = wanted_user_id
    ), assigned AS (
        SELECT a.* FROM targets t CROSS JOIN LATERAL (
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id = t.membership_id
                AND a.resource_type IS NULL
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id IS NULL AND a.group_id = t.group_id
                AND a.resource_type IS NULL
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id IS NULL AND a.api_key_id = t.api_key_id
                AND a.resource_type IS NULL
            OFFSET 0
        ) a
        UNION ALL
        SELECT a.* FROM targets t CROSS JOIN unnest(types, ids) p (type, id) CROSS JOIN LATERAL (
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id = t.membership_id
                AND a.resource_type = p.type AND a.resource_id = p.id
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id IS NULL AND a.group_id = t.group_id
                AND a.resource_type = p.type AND a.resource_id = p.id
            UNION ALL
            SELECT a.* FROM role_assignments a
            WHERE a.tenant_id = wanted_tenant_id AND a.membership_id IS NULL AND a.api_key_id = t.api_key_id
                AND a.resource_type = p.type AND a.resource_id = p.id
            OFFSET 0
        ) a
    )
    SELECT ARRAY(
        SELECT DISTINCT r.key FROM assigned a JOIN roles r ON r.id = a.role_id
        WHERE a.expires_at IS NULL OR (a.expires_at > clock_timestamp() AND a.expires_at >= until)
    )
$$
