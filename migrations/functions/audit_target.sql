-- What is known of the row that an audit row is about: its id, and its version and time afterwards.
--
-- Each is NULL where the text is not of that type, or absent.
--
-- target_id: that of the audit row. document: the row's columns after the change.
-- Called by: app/events/positions.py
CREATE OR REPLACE FUNCTION audit_target(
    target_id text, document json, OUT row_id uuid, OUT version bigint, OUT updated_at timestamptz
) LANGUAGE sql STABLE AS $$
    SELECT
        CASE WHEN pg_input_is_valid(target_id, 'uuid') THEN target_id::uuid END,
        CASE WHEN pg_input_is_valid(document ->> 'version', 'bigint')
            THEN (document ->> 'version')::bigint END,
        CASE WHEN pg_input_is_valid(document ->> 'updated_at', 'timestamptz')
            THEN (document ->> 'updated_at')::timestamptz END
$$
