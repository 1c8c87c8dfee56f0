-- The current subscription of each tenant that has one: it decides the plan and the billing cycle.
--
-- It has not ended, and of these it has the latest start date, then the latest id. A query should
-- compare `tenant_id` with a value, so that PostgreSQL reads only the subscriptions of that tenant.
--
-- Called by: app/plans/following.py, decide_plans, follow_plan, usage_period
CREATE OR REPLACE VIEW current_subscriptions WITH (security_invoker = true) AS
SELECT DISTINCT ON (s.tenant_id) s.tenant_id, s.id, s.plan_name, s.billing_cycle, s.start_date
FROM subscriptions s
WHERE s.status_class <> 'ended'
ORDER BY s.tenant_id, s.start_date DESC, s.id DESC
