-- The roles that each membership and each API key of a tenant has at this moment.
--
-- Those of a membership are its own role, roles assigned to it, and roles assigned to groups of the
-- directory in which its user is. `principal_id` is the membership's id or the key's.
-- `resource_type` and `resource_id` are NULL where the role holds for the whole tenant;
-- `assignment_id` is NULL for the membership's own role. A query should compare `tenant_id` and
-- `principal_id` or `role_id` with values, so that PostgreSQL reads these only.
--
-- Called by: find_held_permissions, find_permitted_members, find_permitted_resources
CREATE OR REPLACE VIEW access_grants WITH (security_invoker = true) AS
SELECT m.tenant_id, m.id AS principal_id, r.id AS role_id, NULL::text AS resource_type,
    NULL::text AS resource_id, NULL::uuid AS assignment_id
FROM memberships m
JOIN roles r ON r.tenant_id IS NULL AND r.key = m.role
UNION ALL
SELECT a.tenant_id, a.membership_id, a.role_id, a.resource_type, a.resource_id, a.id
FROM role_assignments a
WHERE a.membership_id IS NOT NULL AND (a.expires_at IS NULL OR a.expires_at > now())
UNION ALL
SELECT a.tenant_id, a.api_key_id, a.role_id, a.resource_type, a.resource_id, a.id
FROM role_assignments a
WHERE a.api_key_id IS NOT NULL AND (a.expires_at IS NULL OR a.expires_at > now())
UNION ALL
SELECT a.tenant_id, m.id, a.role_id, a.resource_type, a.resource_id, a.id
FROM role_assignments a
JOIN scim_members s ON s.tenant_id = a.tenant_id AND s.group_id = a.group_id
JOIN memberships m ON m.tenant_id = s.tenant_id AND m.user_id = s.user_id
WHERE a.group_id IS NOT NULL AND (a.expires_at IS NULL OR a.expires_at > now())
