-- The plan that each tenant has at this moment.
--
-- After an assigned plan has ended, a job gives the tenant its next plan. Until then
-- `tenants.plan_name` is still the assigned plan, which is `ended_plan_name` here. NULL otherwise.
--
-- Called by: app/flags/evaluation.py, app/plans/models.py, tenant_limits
CREATE OR REPLACE VIEW plans_in_force WITH (security_invoker = true) AS
SELECT t.id AS tenant_id, t.is_active, coalesce(a.next_plan_name, t.plan_name) AS plan_name,
    a.plan_name AS ended_plan_name
FROM tenants t
LEFT JOIN plan_assignments a ON a.tenant_id = t.id AND a.until <= now()
