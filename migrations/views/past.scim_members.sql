-- The members that groups of directories had. A nested group is a member like a person here: no
-- membership has its id.
CREATE OR REPLACE VIEW past.scim_members WITH (security_invoker = true) AS
SELECT m.tenant_id, m.group_id, m.member_id, m.member_id AS user_id, NULL::uuid AS nested_id,
    ''::text AS display
FROM (
    SELECT t.tenant_id, t.row_id AS group_id, c.id::uuid AS member_id,
        (array_agg(c.has_joined ORDER BY t.position DESC, t.number DESC))[1] AS is_member
    FROM past.trail t
    CROSS JOIN LATERAL (
        SELECT json_array_elements_text(t.before -> 'members'), false
        UNION ALL
        SELECT json_array_elements_text(t.after -> 'members'), true
    ) c (id, has_joined)
    WHERE t.target_type = 'scim_group' AND (t.position, t.number)
        <= (past.last_position(), current_setting('app.as_of_number')::bigint)
    GROUP BY t.tenant_id, t.row_id, c.id::uuid
) m
WHERE m.is_member
