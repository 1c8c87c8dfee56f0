-- The platform superadmins that there were.
CREATE OR REPLACE VIEW past.platform_admins WITH (security_invoker = true) AS
SELECT a.subject, a.created_at
FROM (
    SELECT DISTINCT ON (t.target_id) t.target_id AS subject, t.created_at, t.action
    FROM past.trail t
    WHERE t.tenant_id = '00000000-0000-0000-0000-000000000000'
        AND t.target_type = 'platform_admin' AND (t.position, t.number)
        <= (past.last_position(), current_setting('app.as_of_number')::bigint)
    ORDER BY t.target_id, t.position DESC, t.number DESC
) a
WHERE a.action = 'platform_admin.added'
