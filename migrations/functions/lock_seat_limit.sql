-- Lock the tenant's row if its plan limits the seats, and return the limit with the seats in use.
--
-- NULL without a limit, and where the user does not take a seat. Each query sees what the last holder
-- of the lock committed. The seat that the user's pending invitation takes is free for the user.
--
-- new_member_id: a user who becomes a member. activated_id: a user who becomes active. Both NULL:
-- for anybody.
-- Returns JSON: the limit, the seats `used`, and the highest threshold `announced` for this limit.
-- Called by: app/memberships/seats.py
CREATE OR REPLACE FUNCTION lock_seat_limit(wanted_tenant_id uuid, new_member_id uuid, activated_id uuid)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    granted record;
BEGIN
    SELECT l.most, l.policy, l.warn_at INTO granted FROM tenant_limits(wanted_tenant_id, 'seats') l
        WHERE l.most > -1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    PERFORM FROM users u
        WHERE u.tenant_id = wanted_tenant_id AND u.id = new_member_id AND NOT u.is_active;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM memberships m
        WHERE m.tenant_id = wanted_tenant_id AND m.user_id = activated_id AND m.is_active;
    IF activated_id IS NOT NULL AND NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN json_build_object(
        'most', granted.most, 'policy', granted.policy, 'warn_at', granted.warn_at,
        'used', count_seats(wanted_tenant_id) - CASE
            WHEN new_member_id IS NULL AND activated_id IS NULL THEN 0
            ELSE count_invited_seats(wanted_tenant_id, coalesce(new_member_id, activated_id))
        END,
        'announced', coalesce((
            SELECT c.announced FROM usage_counters c
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = 'seats'
                AND c.period_start = 'epoch'
                AND coalesce(c.announced_limit, granted.most) = granted.most
        ), 0)
    );
END
$$
