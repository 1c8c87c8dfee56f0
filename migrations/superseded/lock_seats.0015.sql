CREATE OR REPLACE FUNCTION lock_seats(wanted_tenant_id uuid, new_member_id uuid, activated_id uuid)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    most bigint;
BEGIN
    SELECT l.most INTO most FROM tenant_limits(wanted_tenant_id, 'seats') l
        WHERE l.policy = 'hard' AND l.most > -1;
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
    RETURN most - count_seats(wanted_tenant_id);
END
$$
