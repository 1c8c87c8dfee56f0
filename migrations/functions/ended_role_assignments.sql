-- List and lock assignments that have no effect any more: those that have expired, and those of groups
-- that do not exist any more and of revoked API keys, with the action that records their end.
--
-- Each recursion finds the targets that have assignments, one by one in the index. At most `most` of
-- both kinds are listed.
-- Called by: app/roles/role_assignments.py
CREATE OR REPLACE FUNCTION ended_role_assignments(most integer)
RETURNS TABLE (tenant_id uuid, id uuid, action text) LANGUAGE sql ROWS 10 AS $$
    WITH RECURSIVE expired AS MATERIALIZED (
        SELECT a.tenant_id, a.id FROM role_assignments a WHERE a.expires_at <= now()
        ORDER BY a.expires_at LIMIT most FOR UPDATE SKIP LOCKED
    ), groups AS (
        (
            SELECT a.tenant_id, a.group_id FROM role_assignments a WHERE a.group_id IS NOT NULL
            ORDER BY a.group_id, a.tenant_id LIMIT 1
        )
        UNION ALL
        SELECT next.* FROM groups g CROSS JOIN LATERAL (
            SELECT a.tenant_id, a.group_id FROM role_assignments a
            WHERE a.group_id IS NOT NULL
                AND (a.group_id, a.tenant_id) > (g.group_id, g.tenant_id)
            ORDER BY a.group_id, a.tenant_id LIMIT 1
        ) next
    ), keys AS (
        (
            SELECT a.api_key_id FROM role_assignments a WHERE a.api_key_id IS NOT NULL
            ORDER BY a.api_key_id LIMIT 1
        )
        UNION ALL
        SELECT next.* FROM keys k CROSS JOIN LATERAL (
            SELECT a.api_key_id FROM role_assignments a WHERE a.api_key_id > k.api_key_id
            ORDER BY a.api_key_id LIMIT 1
        ) next
    ), ended AS MATERIALIZED (
        SELECT a.tenant_id, a.id FROM groups g
        JOIN role_assignments a ON a.group_id = g.group_id AND a.tenant_id = g.tenant_id
        WHERE NOT EXISTS (
            SELECT FROM scim_groups s WHERE s.tenant_id = g.tenant_id AND s.id = g.group_id
        )
        UNION ALL
        SELECT a.tenant_id, a.id FROM keys k
        JOIN api_keys revoked ON revoked.id = k.api_key_id AND revoked.revoked_at IS NOT NULL
        JOIN role_assignments a ON a.api_key_id = k.api_key_id
        LIMIT most
    )
    SELECT e.tenant_id, e.id, 'role_assignment.expired' FROM expired e
    UNION ALL
    SELECT e.tenant_id, e.id, 'role_assignment.deleted' FROM ended e
    WHERE NOT EXISTS (SELECT FROM expired x WHERE x.tenant_id = e.tenant_id AND x.id = e.id)
$$
