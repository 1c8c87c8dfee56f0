-- Lock the tenant's row, then list its owners who are active.
--
-- The second query has a newer snapshot than the lock, so it sees what the last holder of the lock
-- committed. So two concurrent changes cannot both remove the last owner.
--
-- Returns the ids of the users. One who is owner by the membership's role and by an assignment is
-- listed twice. An assignment counts that is the membership's, for the whole tenant and without an
-- end.
-- Called by: app/memberships/owners.py
CREATE OR REPLACE FUNCTION lock_owners(wanted_tenant_id uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    RETURN ARRAY(
        SELECT m.user_id
        FROM (
            SELECT own.id FROM memberships own
            WHERE own.tenant_id = wanted_tenant_id AND own.role = 'owner'
            UNION ALL
            SELECT a.membership_id FROM role_assignments a
            JOIN roles r ON r.id = a.role_id AND r.tenant_id IS NULL AND r.key = 'owner'
            WHERE a.tenant_id = wanted_tenant_id
                AND a.resource_type IS NULL AND a.expires_at IS NULL
        ) AS way
        JOIN memberships m ON m.tenant_id = wanted_tenant_id AND m.id = way.id
        JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
        WHERE m.is_active AND u.is_active
    );
END
$$
