-- The audit trail in the order of commits.
--
-- Called by: app/history/differences.py, app/rewinds/comparing.py, app/rewinds/work.py, past.platform_trail, past.platform_admins, past.role_trail, past.scim_members, past.changes, past.oldest
CREATE OR REPLACE VIEW past.trail WITH (security_invoker = true) AS
SELECT p.*, a.after, a.actor, a.action, a.before, a.created_at, a.request_id, a.target_id
FROM public.audit_positions p
JOIN public.audit_events a ON a.tenant_id = p.tenant_id AND a.id = p.id
