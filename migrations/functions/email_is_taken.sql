-- Whether another active user of the tenant has this e-mail address.
--
-- The lock lets one transaction at a time claim the address. The function is in PL/pgSQL and
-- volatile, so that the query has a newer snapshot than the lock.
--
-- wanted_key: the address without differences of case. own_id: the user who wants the address.
-- Called by: app/users/emails.py
CREATE OR REPLACE FUNCTION email_is_taken(wanted_tenant uuid, wanted_key text, own_id uuid)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended('users.email:' || wanted_tenant || ':' || wanted_key, 0)
    );
    RETURN EXISTS (
        SELECT FROM users u
        WHERE u.tenant_id = wanted_tenant AND u.email_key = wanted_key AND u.is_active
            AND u.id <> own_id
    );
END
$$
