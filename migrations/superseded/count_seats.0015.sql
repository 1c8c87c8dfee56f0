-- Count the seats that a tenant uses: the active memberships of active users.
--
-- Called by: app/plans/preview.py, tenant_usage, lock_seat_limit
CREATE OR REPLACE FUNCTION count_seats(wanted_tenant_id uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM memberships m
    JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
    WHERE m.tenant_id = wanted_tenant_id AND m.is_active AND u.is_active
$$
