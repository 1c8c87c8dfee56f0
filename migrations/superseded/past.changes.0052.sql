-- The audit rows about rows with an id, up to the position that is asked for.
--
-- Those without `is_change` say something about a row, and do not change it.
--
-- Called by: past.rows
CREATE OR REPLACE VIEW past.changes WITH (security_invoker = true) AS
SELECT *, action NOT IN (
    'tenant.notes_changed', 'tenant.over_seats', 'tenant.ownerless', 'tenant.plan_assigned',
    'tenant.plan_withdrawn', 'trial.ended', 'trial.ending', 'subscription.plan_unknown',
    'user.erasure_requested', 'user.exported'
) AS is_change
FROM past.trail
WHERE position <= past.last_position() AND row_id IS NOT NULL
