-- Whether a condition of a limit's rule holds for a tenant, decided as by app/plans/rule_conditions.py.
--
-- facts: those of the view `plans_in_force`. Versions and times are not compared: limits do not
-- have such rules. Of another condition that is not valid the result is false.
-- Called by: tenant_limits
CREATE OR REPLACE FUNCTION condition_holds(condition jsonb, facts jsonb)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    wanted jsonb := condition -> 'value';
    found jsonb;
    has_value boolean;
    holds boolean;
BEGIN
    IF condition ? 'attribute' THEN
        found := facts #> (string_to_array(condition ->> 'attribute', '.'))[2:];
        has_value := coalesce(found, 'null') <> 'null';
        holds := CASE condition ->> 'op'
            WHEN 'eq' THEN found = wanted
            WHEN 'ne' THEN found IS DISTINCT FROM wanted
            WHEN 'in' THEN has_value AND found IN (SELECT jsonb_array_elements(wanted))
            WHEN 'not_in' THEN NOT has_value OR found NOT IN (SELECT jsonb_array_elements(wanted))
            WHEN 'exists' THEN has_value = wanted::boolean
            WHEN 'prefix' THEN jsonb_typeof(found) = 'string'
                AND starts_with(found #>> '{}', wanted #>> '{}')
            WHEN 'suffix' THEN jsonb_typeof(found) = 'string'
                AND right(found #>> '{}', length(wanted #>> '{}')) = wanted #>> '{}'
            WHEN 'lt' THEN jsonb_typeof(found) = 'number' AND found < wanted
            WHEN 'le' THEN jsonb_typeof(found) = 'number' AND found <= wanted
            WHEN 'gt' THEN jsonb_typeof(found) = 'number' AND found > wanted
            WHEN 'ge' THEN jsonb_typeof(found) = 'number' AND found >= wanted
        END;
    ELSIF condition ? 'all' THEN
        SELECT bool_and(condition_holds(each, facts)) INTO holds
        FROM jsonb_array_elements(condition -> 'all') each;
    ELSIF condition ? 'any' THEN
        SELECT bool_or(condition_holds(each, facts)) INTO holds
        FROM jsonb_array_elements(condition -> 'any') each;
    ELSIF condition ? 'not' THEN
        holds := NOT condition_holds(condition -> 'not', facts);
    END IF;
    RETURN coalesce(holds, false);
END
$$
