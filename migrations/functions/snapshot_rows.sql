-- List the users, API keys, resources and assignments of a tenant, for decisions in memory.
--
-- user_names, resource_names: the keys of metadata and the attributes that rules of flags compare.
-- bound: each user, API key, member of a group, resource and assignment counts one, and each compared value
-- one more for each 1,000 bytes. Returns no row if there are more.
-- Called by: app/access/snapshot.py
CREATE OR REPLACE FUNCTION snapshot_rows(
    wanted_tenant_id uuid, user_names text[], resource_names text[], bound bigint
) RETURNS TABLE (users json, api_keys json, resources json, assignments json)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    size bigint;
BEGIN
    SELECT sum(one.size) INTO size FROM (
        (SELECT 1 + coalesce((
                SELECT sum(octet_length((u.meta_data -> n.name)::text))
                FROM unnest(user_names) n (name)
            ), 0) / 1000 AS size
            FROM users u WHERE u.tenant_id = wanted_tenant_id LIMIT bound + 1)
        UNION ALL
        (SELECT 1 + coalesce((
                SELECT sum(octet_length((r.attributes -> n.name)::text))
                FROM unnest(resource_names) n (name)
            ), 0) / 1000
            FROM access_resources r WHERE r.tenant_id = wanted_tenant_id LIMIT bound + 1)
        UNION ALL
        (SELECT 1 FROM scim_members s WHERE s.tenant_id = wanted_tenant_id LIMIT bound + 1)
        UNION ALL
        (SELECT 1 FROM api_keys k WHERE k.tenant_id = wanted_tenant_id LIMIT bound + 1)
        UNION ALL
        (SELECT 1 FROM role_assignments a WHERE a.tenant_id = wanted_tenant_id LIMIT bound + 1)
    ) one;
    IF size > bound THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT (
        SELECT json_agg(json_build_object(
            'id', u.id, 'idp_user_id', u.idp_user_id, 'email', u.email_key,
            'is_active', u.is_active, 'membership', CASE WHEN m.id IS NOT NULL THEN
                json_build_object('id', m.id, 'role', m.role, 'is_active', m.is_active) END,
            'groups', coalesce(g.ids, '{}'), 'meta_data', coalesce((
                SELECT json_object_agg(n.name, u.meta_data -> n.name)
                FROM unnest(user_names) n (name) WHERE u.meta_data -> n.name IS NOT NULL
            ), '{}')
        ) ORDER BY u.is_active DESC, u.id)
        FROM users u
        LEFT JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id
        LEFT JOIN (
            SELECT s.user_id, array_agg(s.group_id) AS ids FROM scim_members s
            WHERE s.tenant_id = wanted_tenant_id AND s.user_id IS NOT NULL GROUP BY s.user_id
        ) g ON g.user_id = u.id
        WHERE u.tenant_id = wanted_tenant_id
    ), (
        SELECT json_agg(json_build_object(
            'id', k.id, 'permissions', k.permissions, 'expires_at', k.expires_at,
            'is_active', k.revoked_at IS NULL
        ) ORDER BY k.id) FROM api_keys k WHERE k.tenant_id = wanted_tenant_id
    ), (
        SELECT json_agg(json_build_object(
            'type', r.type, 'id', r.id, 'parent', CASE WHEN r.parent_id IS NOT NULL THEN
                json_build_object('type', r.parent_type, 'id', r.parent_id) END,
            'attributes', coalesce((
                SELECT json_object_agg(n.name, r.attributes -> n.name)
                FROM unnest(resource_names) n (name) WHERE r.attributes ? n.name
            ), '{}')
        ) ORDER BY r.type, r.id) FROM access_resources r WHERE r.tenant_id = wanted_tenant_id
    ), (
        SELECT json_agg(json_build_object(
            'id', a.id, 'membership_id', a.membership_id, 'group_id', a.group_id,
            'api_key_id', a.api_key_id, 'role', r.key,
            'resource', CASE WHEN a.resource_id IS NOT NULL THEN
                json_build_object('type', a.resource_type, 'id', a.resource_id) END,
            'expires_at', a.expires_at
        ) ORDER BY a.id)
        FROM role_assignments a JOIN roles r ON r.id = a.role_id
        WHERE a.tenant_id = wanted_tenant_id
    );
END
$$
