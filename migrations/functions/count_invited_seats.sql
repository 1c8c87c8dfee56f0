-- Count the seats that a tenant's pending invitations take: one for each address that no active
-- member has.
--
-- wanted_user_id: only that of this user's address; NULL for all.
-- Called by: count_seats, lock_seat_limit
CREATE OR REPLACE FUNCTION count_invited_seats(wanted_tenant_id uuid, wanted_user_id uuid)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(DISTINCT i.email_key) FROM invitations i
    WHERE i.tenant_id = wanted_tenant_id AND i.accepted_at IS NULL AND i.revoked_at IS NULL
        AND i.expires_at > now()
        AND (wanted_user_id IS NULL OR i.email_key = (
            SELECT u.email_key FROM users u
            WHERE u.tenant_id = wanted_tenant_id AND u.id = wanted_user_id
        ))
        AND NOT EXISTS (
            SELECT FROM users u
            JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id
            WHERE u.tenant_id = i.tenant_id AND u.email_key = i.email_key
                AND u.is_active AND m.is_active
        )
$$
