-- Decide which plan each of these tenants should have, and what decides it.
--
-- An assigned plan decides until it ends, else the plan of the current subscription, else the
-- default plan. A subscription's plan without a preset has no effect: the tenant keeps its plan.
--
-- default_plan: the setting DEFAULT_PLAN.
-- source: `assignment`, `subscription`, `default`, or `kept` after a plan without a preset.
-- next_plan_name: the plan without the assignment. stored_next_plan_name: what the assignment has
-- noted as such; NULL without one. subscription_id: the current subscription.
-- Called by: app/plans/decision.py, app/tenants/includes.py, follow_plan
CREATE OR REPLACE FUNCTION decide_plans(tenant_ids uuid[], default_plan text)
RETURNS TABLE (
    tenant_id uuid, source text, plan_name text, next_plan_name text, stored_next_plan_name text,
    subscription_id uuid
) LANGUAGE sql STABLE AS $$
    SELECT t.id,
        CASE WHEN a.is_in_force THEN 'assignment' ELSE f.source END,
        CASE WHEN a.is_in_force THEN a.plan_name ELSE n.plan_name END,
        n.plan_name,
        a.next_plan_name,
        s.id
    FROM tenants t
    LEFT JOIN LATERAL (
        SELECT a.plan_name, a.next_plan_name, a.until IS NULL OR a.until > now() AS is_in_force
        FROM plan_assignments a WHERE a.tenant_id = t.id
    ) a ON true
    LEFT JOIN current_subscriptions s ON s.tenant_id = t.id AND s.tenant_id = ANY (tenant_ids)
    LEFT JOIN plan_presets p ON p.name = s.plan_name
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN s.id IS NULL THEN 'default'
            WHEN s.plan_name = default_plan OR p.id IS NOT NULL THEN 'subscription'
            ELSE 'kept' END
    ) f (source)
    CROSS JOIN LATERAL (
        SELECT CASE f.source
            WHEN 'default' THEN default_plan
            WHEN 'subscription' THEN s.plan_name
            ELSE coalesce(a.next_plan_name, t.plan_name) END
    ) n (plan_name)
    WHERE t.id = ANY (tenant_ids)
$$
