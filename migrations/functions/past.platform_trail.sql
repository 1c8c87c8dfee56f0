-- The platform's audit rows of a kind that every tenant may read, in the scope of any tenant.
--
-- Called by: past.role_trail
CREATE OR REPLACE FUNCTION past.platform_trail(kind text) RETURNS SETOF past.trail
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text := current_setting('app.platform', true);
BEGIN
    PERFORM set_config('app.platform', 'on', true);
    RETURN QUERY SELECT * FROM past.trail
        WHERE tenant_id = '00000000-0000-0000-0000-000000000000'
            AND target_type = kind AND kind IN ('plan_preset', 'permission', 'role');
    PERFORM set_config('app.platform', before, true);
END
$$
