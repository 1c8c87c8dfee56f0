-- The position as of which this transaction reads the past.
--
-- Called by: past.define, past.platform_admins, past.scim_members, past.starts, past.changes, past.rows, past.resources_named
CREATE OR REPLACE FUNCTION past.last_position() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT current_setting('app.as_of_position')::bigint
$$
