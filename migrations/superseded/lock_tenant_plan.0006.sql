CREATE OR REPLACE FUNCTION lock_tenant_plan(
    wanted_tenant_id uuid,
    OUT id uuid,
    OUT plan_name text,
    OUT version bigint,
    OUT current_plan_name text
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.id, t.plan_name, t.version INTO id, plan_name, version
        FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    SELECT s.plan_name INTO current_plan_name
        FROM subscriptions s
        WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
        ORDER BY s.start_date DESC, s.id DESC
        LIMIT 1;
END
$$
