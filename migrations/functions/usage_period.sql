-- The period of a limit at a moment.
--
-- `none` has the period since 1970, without an end. A month or billing cycle that has begun keeps its
-- end, so a change of the plan goes on counting. The next one ends as the start day of the current
-- subscription says. It begins where the last one ended, so no moment is in two periods. Without a
-- subscription, and while a plan is assigned, the day counts on which the tenant was created.
--
-- period: `none`, `day`, `month` or `billing_cycle`.
-- Called by: lock_usage, tenant_credits, tenant_usage
CREATE OR REPLACE FUNCTION usage_period(
    wanted_tenant_id uuid, wanted_feature text, period text, moment timestamptz,
    OUT starts timestamptz, OUT ends timestamptz
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    today date := (moment AT TIME ZONE 'UTC')::date;
    first_day date := today;
    next_day date := today + 1;
    anchor date;
    step int;
    passed int;
BEGIN
    IF period = 'none' THEN
        starts := 'epoch';
        RETURN;
    END IF;
    IF period <> 'day' THEN
        SELECT c.period_start, c.period_end INTO starts, ends
            FROM usage_counters c
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
                AND c.period_start > 'epoch' AND c.period_start <= moment
            ORDER BY c.period_start DESC
            LIMIT 1;
        IF ends > moment THEN
            RETURN;
        END IF;
        SELECT (coalesce(s.start_date, t.created_at) AT TIME ZONE 'UTC')::date,
                CASE WHEN period = 'month' THEN 1
                    ELSE CASE s.billing_cycle WHEN 'weekly' THEN 0 WHEN 'quarterly' THEN 3
                        WHEN 'semiannual' THEN 6 WHEN 'annual' THEN 12 ELSE 1 END END
            INTO anchor, step
            FROM tenants t
            LEFT JOIN current_subscriptions s ON s.tenant_id = wanted_tenant_id
                AND NOT EXISTS (
                    SELECT FROM plan_assignments a
                    WHERE a.tenant_id = t.id AND (a.until IS NULL OR a.until > moment)
                )
            WHERE t.id = wanted_tenant_id;
        IF step = 0 THEN  -- weekly
            first_day := anchor + 7 * floor((today - anchor) / 7.0)::int;
            next_day := first_day + 7;
        ELSE
            passed := 12 * (extract(year FROM today) - extract(year FROM anchor))
                + extract(month FROM today) - extract(month FROM anchor);
            passed := step * floor(passed / step::numeric);
            IF (anchor + make_interval(months => passed))::date > today THEN
                passed := passed - step;
            END IF;
            first_day := anchor + make_interval(months => passed);
            next_day := anchor + make_interval(months => passed + step);
        END IF;
    END IF;
    starts := greatest(ends, first_day::timestamp AT TIME ZONE 'UTC');
    ends := next_day::timestamp AT TIME ZONE 'UTC';
END
$$
