-- List the limits of the plan in force.
--
-- An override in force replaces a limit if it is one: another type of flag may have had it. Without
-- one, the first rule that matches gives the limit, else the default value. Seats have no period.
-- After an assigned plan has ended, until a job has moved them, its overrides that carry over apply
-- as well.
--
-- credits: the balance that the limit is, or that its use takes `rate` credits a unit from; else NULL.
--
-- wanted_feature: only this limit; NULL for all.
-- Called by: app/usage/statements.py, consume_usage, cross_credits, grant_lot, hold_usage, lock_hold, lock_seat_limit, refresh_credits, refresh_tenant_credits, tenant_credits, tenant_usage
CREATE OR REPLACE FUNCTION tenant_limits(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (feature text, most bigint, period text, policy text, warn_at smallint[],
    credits text, rate bigint, metering json)
LANGUAGE sql STABLE AS $$
    SELECT flag ->> 'flag_key',
        (CASE WHEN o.flag_value::text ~ '^(-1|[0-9]{1,15}|10{15})$' THEN o.flag_value
            WHEN flag -> 'rules' IS NULL THEN flag -> 'default_value'
            ELSE coalesce((
                SELECT rule -> 'value'
                FROM json_array_elements(flag -> 'rules') WITH ORDINALITY rules (rule, place)
                WHERE condition_holds((rule -> 'when')::jsonb, f.facts::jsonb)
                ORDER BY place LIMIT 1
            ), flag -> 'default_value') END)::text::bigint,
        CASE WHEN flag ->> 'flag_key' = 'seats' THEN 'none'
            ELSE m.metering ->> 'period' END,
        m.metering ->> 'policy',
        ARRAY(SELECT json_array_elements_text(m.metering -> 'warn_at')::smallint),
        CASE WHEN m.metering -> 'kind' IS NOT NULL THEN flag ->> 'flag_key'
            ELSE m.metering #>> '{burns,credits}' END,
        coalesce((m.metering #>> '{burns,rate}')::bigint, 1),
        m.metering
    FROM plans_in_force f
    JOIN plan_presets p ON p.name = f.plan_name
    LEFT JOIN plan_presets ended ON ended.name = f.ended_plan_name
    CROSS JOIN LATERAL json_array_elements(p.flags) flag
    CROSS JOIN LATERAL (SELECT flag -> 'metering' AS metering OFFSET 0) m  -- parsed once
    LEFT JOIN LATERAL (
        SELECT o.flag_value, o.expires_at FROM feature_overrides o
        WHERE o.tenant_id = f.tenant_id AND o.plan_preset_id = ANY (ARRAY[p.id, ended.id])
            AND o.flag_key = flag ->> 'flag_key'
            AND (o.plan_preset_id = p.id
                OR o.carry_over AND have_same_flag(ended.flags, p.flags, o.flag_key))
        ORDER BY o.plan_preset_id = p.id DESC
        LIMIT 1
    ) o ON o.expires_at IS NULL OR o.expires_at > now()
    WHERE f.tenant_id = wanted_tenant_id
        AND (wanted_feature IS NULL OR flag ->> 'flag_key' = wanted_feature)
        AND flag ->> 'flag_type' = 'limit'
$$
