-- What is known of the row that an audit row is about: its id, and its version and time afterwards.
--
-- Each is NULL where the text is not of that type, or absent. The planner may cast a text that it
-- knows before it evaluates pg_input_is_valid(), so only expressions guard these casts that it
-- evaluates as early.
--
-- target_id: that of the audit row. document: the row's columns after the change.
-- Called by: app/events/positions.py, audit_place
CREATE OR REPLACE FUNCTION audit_target(
    target_id text, document json, OUT row_id uuid, OUT version bigint, OUT updated_at timestamptz
) LANGUAGE sql STABLE AS $$
    SELECT
        CASE WHEN target_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            THEN target_id::uuid END,
        CASE WHEN document ->> 'version' ~ '^[0-9]{1,18}$'
            THEN (document ->> 'version')::bigint END,
        CASE WHEN pg_input_is_valid(document ->> 'updated_at', 'timestamptz')
            THEN (document ->> 'updated_at')::timestamptz END
$$
