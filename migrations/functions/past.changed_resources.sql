-- Resources that changed after one position, up to another, by the position of the first change since.
--
-- OFFSET 0 lets the index on names find the audit rows, whatever the planner knows of the tables.
--
-- since, since_time: the first position, and its time: an earlier change of the same name is sought from
-- there only. after_place: skips those whose `place` is not after it. There may be more than `wanted`.
-- Called by: app/rewinds/comparing.py
CREATE OR REPLACE FUNCTION past.changed_resources(
    wanted_tenant_id uuid, since bigint, since_time timestamptz, until bigint, after_place bigint,
    wanted integer
) RETURNS TABLE (row_id text, place bigint, is_new boolean) LANGUAGE sql STABLE AS $$
    SELECT c.target_id, p.position, c.action = 'resource.created'
    FROM public.audit_positions p CROSS JOIN LATERAL (
        SELECT * FROM public.audit_events a WHERE a.tenant_id = p.tenant_id AND a.id = p.id OFFSET 0
    ) c
    WHERE p.tenant_id = wanted_tenant_id AND p.target_type = 'resource' AND p.row_id IS NULL
        AND p.position > greatest(since, after_place) AND p.position <= until AND NOT EXISTS (
            SELECT FROM (
                SELECT * FROM public.audit_events a
                WHERE a.target_id = c.target_id AND a.created_at >= since_time OFFSET 0
            ) e CROSS JOIN LATERAL (
                SELECT * FROM public.audit_positions o
                WHERE o.tenant_id = e.tenant_id AND o.id = e.id OFFSET 0
            ) o
            WHERE o.tenant_id = wanted_tenant_id AND o.target_type = 'resource'
                AND o.position > since AND (o.position, o.number) < (p.position, p.number)
        )
    ORDER BY p.position FETCH FIRST (wanted) ROWS WITH TIES
$$
