-- Whether the session may erase personal data: an erasure of the tenant, or of all, is recorded.
--
-- A login that may update the audit trail itself, such as the owner of the tables, may always erase.
--
-- wanted_tenant: NULL asks for an erasure everywhere.
-- Called by: delete_email_events, redact_email_event, redact_audit_event, redact_event
CREATE OR REPLACE FUNCTION may_erase(wanted_tenant uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT has_table_privilege(session_user, 'public.audit_events', 'UPDATE') OR EXISTS (
        SELECT FROM public.user_erasures e WHERE e.is_everywhere OR e.tenant_id = wanted_tenant
    )
$$
