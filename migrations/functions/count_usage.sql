-- Add an amount to what a counter has used, and find the thresholds that this crosses.
--
-- The caller has locked the counter. The thresholds that were recorded are those of one limit: where
-- the period is `none`, another limit crosses them all anew.
--
-- released: what is held no more. used_before, announced: what the locked counter has.
-- Returns the thresholds, in percent.
-- Called by: consume_usage, settle_hold
CREATE OR REPLACE FUNCTION count_usage(
    wanted_tenant_id uuid, wanted_feature text, wanted_start timestamptz, amount bigint,
    released bigint, used_before bigint, announced smallint, most bigint, warn_at smallint[]
) RETURNS smallint[] LANGUAGE plpgsql AS $$
DECLARE
    crossed smallint[] := '{}';
    percent smallint;
    announced_before smallint := announced;
    announced_now smallint;
BEGIN
    IF announced_before > 0 AND wanted_start = 'epoch' AND EXISTS (
        SELECT FROM usage_counters c
        WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
            AND c.period_start = wanted_start AND c.announced_limit <> most
    ) THEN
        announced_before := 0;
    END IF;
    announced_now := announced_before;
    FOREACH percent IN ARRAY warn_at LOOP
        IF most > -1 AND amount > 0 AND percent > announced_before
            AND 100 * (used_before + amount)::numeric >= percent * most::numeric
            AND percent <> ALL (crossed)
        THEN
            crossed := crossed || percent;
            announced_now := greatest(announced_now, percent);
        END IF;
    END LOOP;
    UPDATE usage_counters c
        SET used = c.used + amount, held = c.held - released, announced = announced_now,
            announced_limit = most
        WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
            AND c.period_start = wanted_start;
    RETURN crossed;
END
$$
