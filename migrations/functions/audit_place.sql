-- What `audit_positions` has of an audit row, besides its place; no row where there is none.
--
-- It keeps its plan, because planning for all partitions takes longer than finding some rows.
--
-- document: the row's columns after the change; NULL if the audit row's `after` has them all.
-- Only processes of the release before 0055 call it.
CREATE OR REPLACE FUNCTION audit_place(wanted_tenant uuid, wanted_id uuid, document json)
RETURNS TABLE (target_type text, row_id uuid, version bigint, updated_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 1 SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
        SELECT a.target_type, t.row_id, t.version, t.updated_at
        FROM public.audit_events a, public.audit_target(a.target_id, coalesce(document, a.after)) t
        WHERE a.tenant_id = wanted_tenant AND a.id = wanted_id;
END
$$
