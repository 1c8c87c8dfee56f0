-- Whether audit rows of this action change their rows; the others say something about them.
--
-- Called by: app/history/differences.py, past.changes
CREATE OR REPLACE FUNCTION past.is_change(action text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT action NOT IN (
        'tenant.notes_changed', 'tenant.over_seats', 'tenant.ownerless', 'tenant.plan_assigned',
        'tenant.plan_withdrawn', 'trial.ended', 'trial.ending', 'subscription.plan_unknown',
        'user.erasure_requested', 'user.exported'
    )
$$
