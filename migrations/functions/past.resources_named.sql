-- The resources with these names, such as `doc/a`, that there were: rows of past.access_resources.
--
-- OFFSET 0 lets the index on names find the audit rows, whatever the planner knows of the tables.
-- Called by: app/rewinds/comparing.py
CREATE OR REPLACE FUNCTION past.resources_named(wanted_tenant_id uuid, names text[])
RETURNS SETOF public.access_resources LANGUAGE sql STABLE AS $$
    SELECT r.* FROM unnest(names) one (name) CROSS JOIN LATERAL (
        SELECT (array_agg(a.action ORDER BY p.position DESC, p.number DESC))[1] AS action,
            json_object_agg(k.key, k.value ORDER BY p.position, p.number)
                FILTER (WHERE k.key IS NOT NULL) AS state
        FROM (SELECT * FROM public.audit_events e WHERE e.target_id = one.name OFFSET 0) a
        CROSS JOIN LATERAL (
            SELECT * FROM public.audit_positions o
            WHERE o.tenant_id = a.tenant_id AND o.id = a.id OFFSET 0
        ) p
        LEFT JOIN LATERAL json_each(a.after) k ON true
        WHERE a.tenant_id = wanted_tenant_id AND a.target_type = 'resource'
            AND p.position <= past.last_position()
        HAVING bool_or(k.key = 'created_at')  -- which no change has
    ) g CROSS JOIN LATERAL json_populate_record(NULL::public.access_resources, g.state) r
    WHERE g.action <> 'resource.deleted'
$$
