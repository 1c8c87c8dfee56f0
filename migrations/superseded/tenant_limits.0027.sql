CREATE OR REPLACE FUNCTION tenant_limits(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (feature text, most bigint, period text, policy text, warn_at smallint[])
LANGUAGE sql STABLE AS $$
    SELECT flag ->> 'flag_key',
        (CASE WHEN o.flag_value::text ~ '^(-1|[0-9]{1,15}|10{15})$' THEN o.flag_value
            ELSE flag -> 'default_value' END)::text::bigint,
        CASE WHEN flag ->> 'flag_key' = 'seats' THEN 'none'
            ELSE flag #>> '{metering,period}' END,
        flag #>> '{metering,policy}',
        ARRAY(SELECT json_array_elements_text(flag #> '{metering,warn_at}')::smallint)
    FROM plans_in_force f
    JOIN plan_presets p ON p.name = f.plan_name
    LEFT JOIN plan_presets ended ON ended.name = f.ended_plan_name
    CROSS JOIN LATERAL json_array_elements(p.flags) flag
    LEFT JOIN LATERAL (
        SELECT o.flag_value FROM feature_overrides o
        WHERE o.tenant_id = f.tenant_id AND o.plan_preset_id = ANY (ARRAY[p.id, ended.id])
            AND o.flag_key = flag ->> 'flag_key'
            AND (o.expires_at IS NULL OR o.expires_at > now())
            AND (o.plan_preset_id = p.id
                OR o.carry_over AND have_same_flag(ended.flags, p.flags, o.flag_key))
        ORDER BY o.plan_preset_id = p.id DESC
        LIMIT 1
    ) o ON true
    WHERE f.tenant_id = wanted_tenant_id
        AND (wanted_feature IS NULL OR flag ->> 'flag_key' = wanted_feature)
        AND flag ->> 'flag_type' = 'limit'
$$
