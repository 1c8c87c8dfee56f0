-- The audit rows about rows with an id, up to the position that is asked for.
--
-- Called by: past.rows
CREATE OR REPLACE VIEW past.changes WITH (security_invoker = true) AS
SELECT *, past.is_change(action) AS is_change
FROM past.trail
WHERE position <= past.last_position() AND row_id IS NOT NULL
