-- Count the seats that a tenant uses: the active memberships of active users, and the addresses with
-- a pending invitation that no such member has.
--
-- Called by: app/plans/preview.py, tenant_usage, lock_seat_limit
CREATE OR REPLACE FUNCTION count_seats(wanted_tenant_id uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (
        SELECT count(*) FROM memberships m
        JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
        WHERE m.tenant_id = wanted_tenant_id AND m.is_active AND u.is_active
    ) + count_invited_seats(wanted_tenant_id, NULL)
$$
