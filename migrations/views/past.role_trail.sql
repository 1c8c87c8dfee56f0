-- The trail of a tenant's roles and of the templates.
--
-- Migrations have made some templates, which have no creation in the trail. Here they have one: the
-- present row, with the values that it had before its changes. It is before everything else.
CREATE OR REPLACE VIEW past.role_trail WITH (security_invoker = true) AS
WITH of_templates AS MATERIALIZED (SELECT t.* FROM past.platform_trail('role') t)
SELECT t.tenant_id, t.row_id, t.position, t.number, t.version, t.updated_at, t.target_type, t.action,
    t.actor, t.after
FROM past.trail t
WHERE t.target_type = 'role' AND t.tenant_id <> '00000000-0000-0000-0000-000000000000'
UNION ALL
SELECT t.tenant_id, t.row_id, t.position, t.number, t.version, t.updated_at, t.target_type, t.action,
    t.actor, t.after
FROM of_templates t
UNION ALL
SELECT '00000000-0000-0000-0000-000000000000', r.id, 0, '-9223372036854775808'::bigint, 1, r.created_at,
    'role', 'role.created', r.created_by_user_id, (to_jsonb(r) || (
        SELECT coalesce(jsonb_object_agg(c.key, c.value ORDER BY t.position DESC, t.number DESC), '{}')
        FROM of_templates t, json_each(t.before) c WHERE t.row_id = r.id
    ))::json
FROM public.roles r
WHERE r.tenant_id IS NULL AND NOT EXISTS (
    SELECT FROM of_templates t WHERE t.row_id = r.id AND t.action = 'role.created'
)
