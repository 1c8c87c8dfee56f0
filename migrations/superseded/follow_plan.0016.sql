CREATE OR REPLACE FUNCTION follow_plan(
    wanted_tenant_id uuid, default_plan text, moment timestamptz,
    OUT tenant tenants, OUT old_plan_name text, OUT unknown_plans text[], OUT carried json
) LANGUAGE plpgsql AS $$
DECLARE
    locked record;
    assigned record;
    is_assigned boolean;
    following text;
    chosen text;
BEGIN
    SELECT * INTO locked FROM lock_tenant_plan(wanted_tenant_id);
    IF locked.id IS NULL THEN
        RETURN;
    END IF;
    SELECT a.plan_name, a.next_plan_name, a.until IS NULL OR a.until > now() AS is_in_force
        INTO assigned
        FROM plan_assignments a WHERE a.tenant_id = wanted_tenant_id;
    is_assigned := FOUND;
    IF NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = locked.current_plan_name) THEN
        PERFORM pg_advisory_xact_lock_shared(
            hashtextextended(concat('plan ', locked.current_plan_name), 0)
        );
    END IF;
    PERFORM FROM plan_presets p
        WHERE p.name IN (
            SELECT s.plan_name FROM subscriptions s
            WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
        )
        ORDER BY p.name FOR KEY SHARE;
    unknown_plans := ARRAY(
        SELECT DISTINCT s.plan_name FROM subscriptions s
        WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
            AND s.plan_name <> default_plan
            AND NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = s.plan_name)
    );
    following := CASE
        WHEN locked.current_plan_name IS NULL THEN default_plan
        WHEN locked.current_plan_name <> ALL (unknown_plans) THEN locked.current_plan_name
        WHEN is_assigned THEN assigned.next_plan_name
        ELSE locked.plan_name
    END;
    chosen := following;
    IF is_assigned THEN
        UPDATE plan_assignments a SET next_plan_name = following
            WHERE a.tenant_id = wanted_tenant_id AND a.next_plan_name <> following;
        IF assigned.is_in_force THEN
            chosen := assigned.plan_name;
        END IF;
    END IF;
    old_plan_name := locked.plan_name;
    IF chosen = old_plan_name THEN
        RETURN;
    END IF;
    UPDATE tenants t
        SET plan_name = chosen, version = t.version + 1, updated_at = moment
        WHERE t.id = wanted_tenant_id
        RETURNING t.* INTO tenant;
    WITH moved AS (
        UPDATE feature_overrides o
            SET plan_preset_id = target.id, version = o.version + 1, updated_at = moment
            FROM plan_presets source, plan_presets target
            WHERE source.name = old_plan_name AND target.name = chosen
                AND o.tenant_id = wanted_tenant_id AND o.plan_preset_id = source.id AND o.carry_over
                AND have_same_flag(source.flags, target.flags, o.flag_key)
                AND NOT EXISTS (
                    SELECT FROM feature_overrides own
                    WHERE own.tenant_id = wanted_tenant_id AND own.plan_preset_id = target.id
                        AND own.flag_key = o.flag_key
                )
            RETURNING source.id AS old_preset_id, to_json(o) AS override
    )
    SELECT json_agg(json_build_object('before', m.old_preset_id, 'override', m.override))
        INTO carried FROM moved m;
END
$$
