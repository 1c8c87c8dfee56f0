-- Lock the tenant and give it the plan that decide_plans decides.
--
-- The queries after the lock see what the last holder of the lock committed. Overrides that carry
-- over move to the new plan.
--
-- Presets that the subscriptions name are locked, so they are not renamed or deleted meanwhile. The
-- advisory lock lets the creation of a missing preset wait for the end of this transaction.
--
-- default_plan: the setting DEFAULT_PLAN. moment: the time of the change, for `updated_at`.
-- tenant: the row, if its plan changes. unknown_plans: the plans without a preset of its
-- subscriptions that have not ended. carried: the overrides that have moved.
-- Called by: app/plans/following.py
CREATE OR REPLACE FUNCTION follow_plan(
    wanted_tenant_id uuid, default_plan text, moment timestamptz,
    OUT tenant tenants, OUT old_plan_name text, OUT unknown_plans text[], OUT carried json
) LANGUAGE plpgsql AS $$
DECLARE
    decided record;
BEGIN
    SELECT t.plan_name INTO old_plan_name
        FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(concat('plan ', s.plan_name), 0))
        FROM current_subscriptions s
        WHERE s.tenant_id = wanted_tenant_id
            AND NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = s.plan_name);
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
    SELECT * INTO decided FROM decide_plans(ARRAY[wanted_tenant_id], default_plan);
    IF decided.stored_next_plan_name <> decided.next_plan_name THEN
        UPDATE plan_assignments a SET next_plan_name = decided.next_plan_name
            WHERE a.tenant_id = wanted_tenant_id;
    END IF;
    IF decided.plan_name = old_plan_name THEN
        RETURN;
    END IF;
    UPDATE tenants t
        SET plan_name = decided.plan_name, version = t.version + 1, updated_at = moment
        WHERE t.id = wanted_tenant_id
        RETURNING t.* INTO tenant;
    WITH moved AS (
        UPDATE feature_overrides o
            SET plan_preset_id = target.id, version = o.version + 1, updated_at = moment
            FROM plan_presets source, plan_presets target
            WHERE source.name = old_plan_name AND target.name = decided.plan_name
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
