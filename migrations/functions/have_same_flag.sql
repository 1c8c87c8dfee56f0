-- Whether both lists of flags have this flag, with the same type. Only then an override of one plan
-- carries over to the other.
--
-- Called by: app/flags/evaluation.py, tenant_limits, follow_plan
CREATE OR REPLACE FUNCTION have_same_flag(flags json, other_flags json, wanted_key text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (
        SELECT FROM json_array_elements(flags) one
        JOIN json_array_elements(other_flags) other
            ON one ->> 'flag_type' = other ->> 'flag_type'
        WHERE one ->> 'flag_key' = wanted_key AND other ->> 'flag_key' = wanted_key
    )
$$
