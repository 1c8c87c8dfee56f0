-- The plan that each tenant has at this moment, and what rules of flags compare of the tenant.
--
-- After an assigned plan has ended, a job gives the tenant its next plan. Until then
-- `tenants.plan_name` is still the assigned plan, which is `ended_plan_name` here. NULL otherwise.
--
-- Called by: app/flags/evaluation.py, app/flags/flagd.py, app/plans/models.py, tenant_limits
CREATE OR REPLACE VIEW plans_in_force WITH (security_invoker = true) AS
SELECT t.id AS tenant_id, t.is_active, coalesce(a.next_plan_name, t.plan_name) AS plan_name,
    a.plan_name AS ended_plan_name, json_build_object(
        'plan', coalesce(a.next_plan_name, t.plan_name), 'slug', t.slug,
        'region', t.mailing_state, 'country', t.mailing_country,
        'age_days', floor(extract(epoch FROM now() - t.created_at) / 86400)::bigint,
        'meta_data', t.meta_data
    ) AS facts
FROM tenants t
LEFT JOIN plan_assignments a ON a.tenant_id = t.id AND a.until <= now()
