-- Find who sends a request with a user token, and set the tenant scope of the transaction.
--
-- The scope is that of row-level security: the platform for a platform superadmin, otherwise the
-- tenant of the organization. `user_id` and `role` are NULL unless the user and the membership are
-- active. A suspended tenant is found too.
--
-- wanted_subject: the token's subject. wanted_org_id: its organization.
-- Called by: app/auth/principals.py
CREATE OR REPLACE FUNCTION authenticate_user(
    wanted_subject text,
    wanted_org_id text,
    OUT is_superadmin boolean,
    OUT tenant_id uuid,
    OUT tenant_is_active boolean,
    OUT user_id uuid,
    OUT role text
) LANGUAGE plpgsql AS $$
BEGIN
    is_superadmin := EXISTS (SELECT FROM platform_admins p WHERE p.subject = wanted_subject);
    SELECT t.id, t.is_active INTO tenant_id, tenant_is_active
        FROM tenants t WHERE t.idp_org_id = wanted_org_id;
    PERFORM set_config('app.platform', CASE WHEN is_superadmin THEN 'on' ELSE '' END, true);
    IF is_superadmin OR tenant_id IS NULL THEN
        PERFORM set_config('app.tenant_id', '', true);
        RETURN;
    END IF;
    PERFORM set_config('app.tenant_id', tenant_id::text, true);
    SELECT u.id, m.role INTO user_id, role
        FROM users u
        JOIN memberships m ON m.tenant_id = u.tenant_id AND m.user_id = u.id
        WHERE u.tenant_id = authenticate_user.tenant_id
            AND u.idp_user_id = wanted_subject AND u.is_active AND m.is_active;
END
$$
