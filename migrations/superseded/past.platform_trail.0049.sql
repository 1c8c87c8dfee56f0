-- The audit rows of plan presets, which every tenant may read, in the scope of any tenant.
CREATE OR REPLACE FUNCTION past.platform_trail() RETURNS SETOF past.trail
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text := current_setting('app.platform', true);
BEGIN
    PERFORM set_config('app.platform', 'on', true);
    RETURN QUERY SELECT * FROM past.trail
        WHERE tenant_id = '00000000-0000-0000-0000-000000000000'
            AND target_type = 'plan_preset' AND position <= past.last_position();
    PERFORM set_config('app.platform', before, true);
END
$$
