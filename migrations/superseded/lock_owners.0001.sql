-- Lock the tenant's row, then list its owners who are active.
--
-- The second query has a newer snapshot than the lock, so it sees what the last holder of the lock
-- committed. So two concurrent changes cannot both remove the last owner.
--
-- Returns the ids of the users.
-- Called by: app/memberships/owners.py
CREATE OR REPLACE FUNCTION lock_owners(wanted_tenant_id uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    RETURN ARRAY(
        SELECT m.user_id
        FROM memberships m
        JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
        WHERE m.tenant_id = wanted_tenant_id
            AND m.role = 'owner' AND m.is_active AND u.is_active
    );
END
$$
