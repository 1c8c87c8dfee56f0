-- Rows of each tenant's first base that are older than the trail: it no longer has their creation.
--
-- Called by: app/privacy/people/redaction.py
CREATE OR REPLACE VIEW past.oldest WITH (security_invoker = true) AS
SELECT b.*, '' AS request_id
FROM (SELECT tenant_id, min(position) AS position FROM public.past_bases GROUP BY tenant_id) f
JOIN public.past_bases b ON b.tenant_id = f.tenant_id AND b.position = f.position
WHERE NOT EXISTS (
    SELECT FROM past.trail a
    WHERE a.tenant_id = b.tenant_id AND a.target_type = b.target_type AND a.row_id = b.row_id
        AND a.position <= b.position AND a.after -> 'created_at' IS NOT NULL
)
