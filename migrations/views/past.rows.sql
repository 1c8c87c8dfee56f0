-- The rows that there were, of all kinds: what the base of the tenant has of a row (`state`), and the
-- fields that were changed since then (`changes`). Each is NULL where there is none.
--
-- A row that has ended is absent, and one whose creation is not in the trail.
--
-- Called by: past.define, past.write_base
CREATE OR REPLACE VIEW past.rows WITH (security_invoker = true) AS
SELECT s.tenant_id, c.target_type, c.row_id, greatest(b.version, c.version) AS version,
    greatest(b.updated_at, c.updated_at) AS updated_at, coalesce(c.actor, b.actor) AS actor,
    b.state, c.changes
FROM past.starts s
CROSS JOIN LATERAL (
    SELECT a.target_type, a.row_id, max(a.version) AS version, max(a.updated_at) AS updated_at,
        json_object_agg(k.key, k.value ORDER BY a.position, a.number)
            FILTER (WHERE k.key IS NOT NULL) AS changes,
        (array_agg(a.actor ORDER BY a.position DESC, a.number DESC) FILTER (WHERE a.is_change))[1] AS actor,
        (array_agg(a.action ORDER BY a.position DESC, a.number DESC) FILTER (WHERE a.is_change))[1] AS action,
        bool_or(k.key = 'created_at') AS has_creation  -- no change has this field
    FROM past.changes a LEFT JOIN LATERAL json_each(a.after) k ON a.is_change
    WHERE a.tenant_id = s.tenant_id AND a.position > s.position
    GROUP BY a.target_type, a.row_id
) c
LEFT JOIN public.past_bases b ON b.tenant_id = s.tenant_id AND b.position = s.position
    AND b.target_type = c.target_type AND b.row_id = c.row_id
WHERE (c.has_creation OR b.row_id IS NOT NULL)
    AND coalesce(c.action, '') NOT IN (c.target_type || '.deleted', 'user.erased', 'role_assignment.expired')
UNION ALL
SELECT b.tenant_id, b.target_type, b.row_id, b.version, b.updated_at, b.actor, b.state, NULL
FROM past.starts s
JOIN public.past_bases b ON b.tenant_id = s.tenant_id AND b.position = s.position
WHERE NOT EXISTS (
    SELECT FROM public.audit_positions p
    WHERE p.tenant_id = b.tenant_id AND p.target_type = b.target_type AND p.row_id = b.row_id
        AND p.position > b.position AND p.position <= past.last_position()
)
