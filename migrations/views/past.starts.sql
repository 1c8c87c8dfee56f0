-- The tenants, each with the position of the base that a read of the past begins with; -1 without one.
--
-- `app.as_of_tenant` is the only tenant that is wanted; without it, all. No base after `app.as_of_base`
-- is used; without it, none after `app.as_of_position`.
--
-- Called by: past.rows
CREATE OR REPLACE VIEW past.starts WITH (security_invoker = true) AS
SELECT t.id AS tenant_id, b.position
FROM (
    SELECT id FROM public.tenants WHERE id BETWEEN
        coalesce(nullif(current_setting('app.as_of_tenant', true), ''), '00000000-0000-0000-0000-000000000000')::uuid
        AND coalesce(nullif(current_setting('app.as_of_tenant', true), ''), 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
    UNION ALL
    SELECT '00000000-0000-0000-0000-000000000000'
) t
CROSS JOIN LATERAL (
    SELECT coalesce(max(b.position), -1) AS position FROM public.past_bases b
    -- row-level security keeps the index from coalesce(), not from CASE
    WHERE b.tenant_id = t.id AND b.position <= CASE WHEN current_setting('app.as_of_base', true) <> ''
        THEN current_setting('app.as_of_base')::bigint ELSE past.last_position() END
) b
