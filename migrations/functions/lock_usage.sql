-- Lock the counter of the current period of a limit, and create it if it is missing.
--
-- An advisory lock lets only one transaction create the counter. The others look again, because
-- another subscription may have decided the period meanwhile.
--
-- period: the kind of period, as usage_period knows it.
-- Returns the period, what is used and held in it, and the highest threshold that was recorded.
-- Called by: app/usage/statements.py, consume_usage, hold_usage, refresh_credits
CREATE OR REPLACE FUNCTION lock_usage(
    wanted_tenant_id uuid, wanted_feature text, period text,
    OUT starts timestamptz, OUT ends timestamptz, OUT used bigint, OUT announced smallint,
    OUT held bigint
) LANGUAGE plpgsql AS $$
DECLARE
    creates boolean := false;
BEGIN
    LOOP
        SELECT p.starts, p.ends INTO starts, ends
            FROM usage_period(wanted_tenant_id, wanted_feature, period, now()) p;
        SELECT c.used, c.announced, c.held INTO used, announced, held
            FROM usage_counters c
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
                AND c.period_start = starts
            FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        IF creates THEN
            used := 0;
            announced := 0;
            held := 0;
            INSERT INTO usage_counters
                (tenant_id, feature, period_start, period_end, used, announced)
                VALUES (wanted_tenant_id, wanted_feature, starts, ends, used, announced);
            EXIT;
        END IF;
        PERFORM pg_advisory_xact_lock(
            hashtextextended(concat(wanted_tenant_id, ' ', wanted_feature), 0)
        );
        creates := true;
    END LOOP;
    IF held > 0 THEN
        held := held - sweep_holds(wanted_tenant_id, wanted_feature, starts);
    END IF;
END
$$
