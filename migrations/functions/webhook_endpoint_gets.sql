-- Whether a webhook endpoint gets an event. The platform's endpoints get those of all tenants.
--
-- patterns: the types of events; a pattern that ends with `*` stands for all types with this prefix.
-- Called by: app/webhooks/deliveries/statements.py
CREATE OR REPLACE FUNCTION webhook_endpoint_gets(
    endpoint_tenant_id uuid, patterns text[], event_tenant_id uuid, event_type text
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (endpoint_tenant_id = event_tenant_id
            OR endpoint_tenant_id = '00000000-0000-0000-0000-000000000000')
        AND EXISTS (
            SELECT FROM unnest(patterns) AS p (pattern)
            WHERE pattern = event_type
                OR right(pattern, 1) = '*' AND starts_with(event_type, left(pattern, -1))
        )
$$
