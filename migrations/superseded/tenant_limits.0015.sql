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
    FROM tenants t
    JOIN plan_presets p ON p.name = t.plan_name
    CROSS JOIN LATERAL json_array_elements(p.flags) flag
    LEFT JOIN feature_overrides o
        ON o.tenant_id = t.id AND o.plan_preset_id = p.id AND o.flag_key = flag ->> 'flag_key'
        AND (o.expires_at IS NULL OR o.expires_at > now())
    WHERE t.id = wanted_tenant_id
        AND (wanted_feature IS NULL OR flag ->> 'flag_key' = wanted_feature)
        AND flag ->> 'flag_type' = 'limit'
$$
