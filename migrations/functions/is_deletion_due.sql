-- Whether a tenant may be deleted now: its grace period is over, and nobody has restored it.
--
-- Called by: delete_tenant_batch, delete_email_events, past.add_base
CREATE OR REPLACE FUNCTION is_deletion_due(wanted_tenant uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM public.tenants t JOIN public.tenant_deletions d ON d.tenant_id = t.id
        WHERE t.id = wanted_tenant AND t.deletes_at <= now() AND NOT t.is_active
    )
$$
