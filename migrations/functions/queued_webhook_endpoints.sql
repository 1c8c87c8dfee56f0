-- List the webhook endpoints that have unfinished deliveries. It finds them one by one in the index.
--
-- Called by: app/webhooks/deliveries/statements.py, app/webhooks/deliveries/health.py
CREATE OR REPLACE FUNCTION queued_webhook_endpoints() RETURNS TABLE (tenant_id uuid, endpoint_id uuid)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE queued AS (
        (SELECT d.tenant_id, d.endpoint_id FROM webhook_deliveries d
            WHERE d.next_attempt_at IS NOT NULL ORDER BY d.tenant_id, d.endpoint_id LIMIT 1)
        UNION ALL
        SELECT following.* FROM queued q CROSS JOIN LATERAL (
            SELECT d.tenant_id, d.endpoint_id FROM webhook_deliveries d
            WHERE d.next_attempt_at IS NOT NULL
                AND (d.tenant_id, d.endpoint_id) > (q.tenant_id, q.endpoint_id)
            ORDER BY d.tenant_id, d.endpoint_id LIMIT 1
        ) following
    )
    SELECT queued.tenant_id, queued.endpoint_id FROM queued
$$
