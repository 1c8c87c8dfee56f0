CREATE OR REPLACE VIEW plans_in_force WITH (security_invoker = true) AS
SELECT t.id AS tenant_id, t.is_active, coalesce(a.next_plan_name, t.plan_name) AS plan_name,
    a.plan_name AS ended_plan_name
FROM tenants t
LEFT JOIN plan_assignments a ON a.tenant_id = t.id AND a.until <= now()
