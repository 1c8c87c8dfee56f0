-- As public.plans_in_force, of an earlier moment: the plan that each tenant had then.
CREATE OR REPLACE VIEW past.plans_in_force WITH (security_invoker = true) AS
SELECT t.id AS tenant_id, t.is_active, t.plan_name, NULL::text AS ended_plan_name,
    json_build_object(
        'plan', t.plan_name, 'slug', t.slug, 'region', t.mailing_state,
        'country', t.mailing_country,
        'age_days', floor(extract(epoch FROM past.now() - t.created_at) / 86400)::bigint,
        'meta_data', t.meta_data
    ) AS facts
FROM past.tenants t
