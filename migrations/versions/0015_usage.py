"""Limits: the counters of what tenants use, and the functions that find a limit and count."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# The limits of a tenant's plan, or only `wanted_feature`. An override in force replaces a default
# value if it is a limit: another type of flag may have had it. Seats have no period.
TENANT_LIMITS = """
CREATE FUNCTION tenant_limits(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (feature text, most bigint, period text, policy text, warn_at smallint[])
LANGUAGE sql STABLE AS $$
    SELECT flag ->> 'flag_key',
        (CASE WHEN o.flag_value::text ~ '^(-1|[0-9]{1,15}|10{15})$' THEN o.flag_value
            ELSE flag -> 'default_value' END)::text::bigint,
        CASE WHEN flag ->> 'flag_key' = 'seats' THEN 'none'
            ELSE flag #>> '{metering,period}' END,
        flag #>> '{metering,policy}',
        ARRAY(SELECT json_array_elements_text(flag #> '{metering,warn_at}')::smallint)
    FROM tenants t
    JOIN plan_presets p ON p.name = t.plan_name
    CROSS JOIN LATERAL json_array_elements(p.flags) flag
    LEFT JOIN feature_overrides o
        ON o.tenant_id = t.id AND o.plan_preset_id = p.id AND o.flag_key = flag ->> 'flag_key'
        AND (o.expires_at IS NULL OR o.expires_at > now())
    WHERE t.id = wanted_tenant_id
        AND (wanted_feature IS NULL OR flag ->> 'flag_key' = wanted_feature)
        AND flag ->> 'flag_type' = 'limit'
$$
"""

# The period of a counter at a moment. `none` has the period since 1970, without an end. A month or
# cycle that has begun keeps its end, so a change of the plan goes on counting. The next one ends as
# the start day of the current subscription says; it begins where the last one ended, so no moment
# is in two periods.
USAGE_PERIOD = """
CREATE FUNCTION usage_period(
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
            LEFT JOIN LATERAL (
                SELECT s.start_date, s.billing_cycle FROM subscriptions s
                WHERE s.tenant_id = t.id AND s.status_class <> 'ended'
                ORDER BY s.start_date DESC, s.id DESC
                LIMIT 1
            ) s ON true
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
"""

# Lock the counter of the current period, and create it if it is missing. The advisory lock lets
# only one transaction create it; the others look again, because the period may have been decided
# by another subscription meanwhile.
LOCK_USAGE = """
CREATE FUNCTION lock_usage(
    wanted_tenant_id uuid, wanted_feature text, period text,
    OUT starts timestamptz, OUT ends timestamptz, OUT used bigint, OUT announced smallint
) LANGUAGE plpgsql AS $$
DECLARE
    creates boolean := false;
BEGIN
    LOOP
        SELECT p.starts, p.ends INTO starts, ends
            FROM usage_period(wanted_tenant_id, wanted_feature, period, now()) p;
        SELECT c.used, c.announced INTO used, announced
            FROM usage_counters c
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = wanted_feature
                AND c.period_start = starts
            FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        IF creates THEN
            used := 0;
            announced := 0;
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
END
$$
"""

# The current periods of a tenant's limits, or only of `wanted_feature`.
TENANT_USAGE = """
CREATE FUNCTION tenant_usage(wanted_tenant_id uuid, wanted_feature text)
RETURNS TABLE (
    feature text, most bigint, period text, policy text, warn_at smallint[],
    starts timestamptz, ends timestamptz, used bigint, announced smallint
) LANGUAGE sql STABLE AS $$
    SELECT l.*, p.starts, p.ends,
        CASE WHEN l.feature = 'seats' THEN count_seats(wanted_tenant_id)
            ELSE coalesce(c.used, 0) END,
        coalesce(c.announced, 0::smallint)
    FROM tenant_limits(wanted_tenant_id, wanted_feature) l
    CROSS JOIN LATERAL usage_period(wanted_tenant_id, l.feature, l.period, now()) p
    LEFT JOIN usage_counters c ON c.tenant_id = wanted_tenant_id AND c.feature = l.feature
        AND c.period_start = p.starts
$$
"""

# Decide on each entry, in the order of the features, and count what is allowed unless
# `is_counted` is false. No row for an unknown tenant. After a `fault` the caller rolls back.
# A digest of an idempotency key that was counted within 24 hours is allowed and not counted again.
CONSUME_USAGE = """
CREATE FUNCTION consume_usage(
    wanted_tenant_id uuid, features text[], amounts bigint[], moments timestamptz[],
    digests uuid[], is_counted boolean
) RETURNS TABLE (
    place bigint, fault text, is_allowed boolean, feature text, most bigint, policy text,
    used bigint, ends timestamptz, crossed smallint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    entry record;
    granted record;
    counter record;
    is_active boolean;
    is_new boolean;
    stored_amount bigint;
    percent smallint;
    announced_now smallint;
BEGIN
    SELECT t.is_active INTO is_active FROM tenants t WHERE t.id = wanted_tenant_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR entry IN
        SELECT * FROM unnest(features, amounts, moments, digests)
            WITH ORDINALITY AS e (feature, amount, moment, digest, place)
        ORDER BY e.feature COLLATE "C", e.place
    LOOP
        place := entry.place;
        feature := entry.feature;
        crossed := '{}';
        SELECT * INTO granted FROM tenant_limits(wanted_tenant_id, entry.feature);
        fault := CASE
            WHEN NOT FOUND THEN 'unknown'
            WHEN is_counted AND feature = 'seats' THEN 'seats'
            WHEN entry.amount < 0 AND granted.period <> 'none' THEN 'negative'
            WHEN NOT is_active THEN 'suspended'
        END;
        IF fault IS NOT NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF is_counted THEN
            SELECT * INTO counter FROM lock_usage(wanted_tenant_id, feature, granted.period);
        ELSE
            SELECT * INTO counter FROM tenant_usage(wanted_tenant_id, feature);
        END IF;
        most := granted.most;
        policy := granted.policy;
        used := counter.used;
        ends := counter.ends;
        is_allowed := CASE
            WHEN entry.amount < 0 THEN used + entry.amount >= 0
            ELSE policy = 'soft' OR most = -1 OR used + entry.amount <= most
        END;
        is_new := entry.digest IS NULL;
        IF NOT is_new AND is_counted AND is_allowed THEN
            INSERT INTO usage_keys (tenant_id, digest, amount, created_at)
                VALUES (wanted_tenant_id, entry.digest, entry.amount, now())
                ON CONFLICT (tenant_id, digest) DO UPDATE
                SET amount = excluded.amount, created_at = excluded.created_at
                WHERE usage_keys.created_at <= now() - interval '24 hours';
            is_new := FOUND;
        END IF;
        IF NOT is_new THEN
            SELECT k.amount INTO stored_amount FROM usage_keys k
                WHERE k.tenant_id = wanted_tenant_id AND k.digest = entry.digest
                    AND k.created_at > now() - interval '24 hours';
            is_new := NOT FOUND;
            is_allowed := is_allowed OR FOUND;
        END IF;
        fault := CASE
            WHEN entry.moment < counter.starts OR entry.moment >= ends THEN 'at'
            WHEN used + entry.amount > 1000000000000000000 THEN 'too_large'
            WHEN NOT is_new AND stored_amount <> entry.amount THEN 'reused'
        END;
        IF is_counted AND is_allowed AND is_new AND fault IS NULL THEN
            used := used + entry.amount;
            announced_now := counter.announced;
            FOREACH percent IN ARRAY granted.warn_at LOOP
                IF most > -1 AND entry.amount > 0 AND percent > counter.announced
                    AND 100 * used::numeric >= percent * most::numeric
                    AND percent <> ALL (crossed)
                THEN
                    crossed := crossed || percent;
                    announced_now := greatest(announced_now, percent);
                END IF;
            END LOOP;
            UPDATE usage_counters c
                SET used = c.used + entry.amount, announced = announced_now
                WHERE c.tenant_id = wanted_tenant_id AND c.feature = entry.feature
                    AND c.period_start = counter.starts;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$
"""

# Lock the tenant if its plan limits the seats, and return how many are left: for `new_member_id`,
# a user who becomes a member, or `activated_id`, a user who becomes active, or for anybody. NULL
# without a limit, and where the user does not take a seat. Each query sees what the last holder of
# the lock committed.
LOCK_SEATS = """
CREATE FUNCTION lock_seats(wanted_tenant_id uuid, new_member_id uuid, activated_id uuid)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    most bigint;
BEGIN
    SELECT l.most INTO most FROM tenant_limits(wanted_tenant_id, 'seats') l
        WHERE l.policy = 'hard' AND l.most > -1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    PERFORM FROM users u
        WHERE u.tenant_id = wanted_tenant_id AND u.id = new_member_id AND NOT u.is_active;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM memberships m
        WHERE m.tenant_id = wanted_tenant_id AND m.user_id = activated_id AND m.is_active;
    IF activated_id IS NOT NULL AND NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN most - count_seats(wanted_tenant_id);
END
$$
"""

COUNT_SEATS = """
CREATE FUNCTION count_seats(wanted_tenant_id uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM memberships m
    JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
    WHERE m.tenant_id = wanted_tenant_id AND m.is_active AND u.is_active
$$
"""

FUNCTIONS = (
    TENANT_LIMITS,
    USAGE_PERIOD,
    COUNT_SEATS,
    LOCK_USAGE,
    TENANT_USAGE,
    CONSUME_USAGE,
    LOCK_SEATS,
)


def upgrade():
    op.create_table(
        "usage_counters",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("period_start", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("period_end", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("announced", sa.SmallInteger(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_usage_counters_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "feature", "period_start", name=op.f("pk_usage_counters")
        ),
    )
    op.execute("ALTER TABLE usage_counters SET (fillfactor = 90)")  # leaves room for HOT updates
    op.create_table(
        "usage_keys",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_usage_keys")),
    )
    op.create_index(op.f("ix_usage_keys_created_at"), "usage_keys", ["created_at"])
    isolate("usage_counters")
    isolate("usage_keys")
    for function in FUNCTIONS:
        op.execute(function)


def downgrade():
    op.execute("DROP FUNCTION lock_seats(uuid, uuid, uuid)")
    op.execute(
        "DROP FUNCTION consume_usage(uuid, text[], bigint[], timestamptz[], uuid[], boolean)"
    )
    op.execute("DROP FUNCTION tenant_usage(uuid, text)")
    op.execute("DROP FUNCTION lock_usage(uuid, text, text)")
    op.execute("DROP FUNCTION count_seats(uuid)")
    op.execute("DROP FUNCTION usage_period(uuid, text, text, timestamptz)")
    op.execute("DROP FUNCTION tenant_limits(uuid, text)")
    op.drop_table("usage_keys")
    op.drop_table("usage_counters")
