"""Plans that the platform assigns, overrides that go along to the next plan, names of plans."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# Whether both lists of flags have this flag, with the same type.
HAVE_SAME_FLAG = """
CREATE FUNCTION have_same_flag(flags json, other_flags json, wanted_key text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (
        SELECT FROM json_array_elements(flags) one
        JOIN json_array_elements(other_flags) other
            ON one ->> 'flag_type' = other ->> 'flag_type'
        WHERE one ->> 'flag_key' = wanted_key AND other ->> 'flag_key' = wanted_key
    )
$$
"""

# Lock the tenant and give it the plan in force: an assigned plan until it ends, else that of its
# current subscription, else the default plan. A subscription's plan without a preset has no effect:
# the tenant keeps the plan it has. `tenant` is the row if its plan changes. `unknown_plans` are the
# plans without a preset of its subscriptions that have not ended. `carried` are the overrides that
# go along to the new plan.
#
# Presets that the subscriptions name are locked, so they are not renamed or deleted meanwhile. The
# advisory lock lets the creation of a missing preset wait for the end of this transaction.
FOLLOW_PLAN = """
CREATE FUNCTION follow_plan(
    wanted_tenant_id uuid, default_plan text, moment timestamptz,
    OUT tenant tenants, OUT old_plan_name text, OUT unknown_plans text[], OUT carried json
) LANGUAGE plpgsql AS $$
DECLARE
    locked record;
    assigned record;
    is_assigned boolean;
    following text;
    chosen text;
BEGIN
    SELECT * INTO locked FROM lock_tenant_plan(wanted_tenant_id);
    IF locked.id IS NULL THEN
        RETURN;
    END IF;
    SELECT a.plan_name, a.next_plan_name, a.until IS NULL OR a.until > now() AS is_in_force
        INTO assigned
        FROM plan_assignments a WHERE a.tenant_id = wanted_tenant_id;
    is_assigned := FOUND;
    IF NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = locked.current_plan_name) THEN
        PERFORM pg_advisory_xact_lock_shared(
            hashtextextended(concat('plan ', locked.current_plan_name), 0)
        );
    END IF;
    PERFORM FROM plan_presets p
        WHERE p.name IN (
            SELECT s.plan_name FROM subscriptions s
            WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
        )
        ORDER BY p.name FOR KEY SHARE;
    unknown_plans := ARRAY(
        SELECT DISTINCT s.plan_name FROM subscriptions s
        WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
            AND s.plan_name <> default_plan
            AND NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = s.plan_name)
    );
    following := CASE
        WHEN locked.current_plan_name IS NULL THEN default_plan
        WHEN locked.current_plan_name <> ALL (unknown_plans) THEN locked.current_plan_name
        WHEN is_assigned THEN assigned.next_plan_name
        ELSE locked.plan_name
    END;
    chosen := following;
    IF is_assigned THEN
        UPDATE plan_assignments a SET next_plan_name = following
            WHERE a.tenant_id = wanted_tenant_id AND a.next_plan_name <> following;
        IF assigned.is_in_force THEN
            chosen := assigned.plan_name;
        END IF;
    END IF;
    old_plan_name := locked.plan_name;
    IF chosen = old_plan_name THEN
        RETURN;
    END IF;
    UPDATE tenants t
        SET plan_name = chosen, version = t.version + 1, updated_at = moment
        WHERE t.id = wanted_tenant_id
        RETURNING t.* INTO tenant;
    WITH moved AS (
        UPDATE feature_overrides o
            SET plan_preset_id = target.id, version = o.version + 1, updated_at = moment
            FROM plan_presets source, plan_presets target
            WHERE source.name = old_plan_name AND target.name = chosen
                AND o.tenant_id = wanted_tenant_id AND o.plan_preset_id = source.id AND o.carry_over
                AND have_same_flag(source.flags, target.flags, o.flag_key)
                AND NOT EXISTS (
                    SELECT FROM feature_overrides own
                    WHERE own.tenant_id = wanted_tenant_id AND own.plan_preset_id = target.id
                        AND own.flag_key = o.flag_key
                )
            RETURNING source.id AS old_preset_id, to_json(o) AS override
    )
    SELECT json_agg(json_build_object('before', m.old_preset_id, 'override', m.override))
        INTO carried FROM moved m;
END
$$
"""

# The limits of the plan in force, or only `wanted_feature`. An override in force replaces a default
# value if it is a limit: another type of flag may have had it. Seats have no period. After an
# assigned plan has ended, until a job has moved them, its overrides that go along apply as well.
TENANT_LIMITS = """
CREATE OR REPLACE FUNCTION tenant_limits(wanted_tenant_id uuid, wanted_feature text)
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
    LEFT JOIN plan_assignments a ON a.tenant_id = t.id AND a.until <= now()
    JOIN plan_presets p ON p.name = coalesce(a.next_plan_name, t.plan_name)
    LEFT JOIN plan_presets ended ON ended.name = a.plan_name
    CROSS JOIN LATERAL json_array_elements(p.flags) flag
    LEFT JOIN LATERAL (
        SELECT o.flag_value FROM feature_overrides o
        WHERE o.tenant_id = t.id AND o.plan_preset_id = ANY (ARRAY[p.id, ended.id])
            AND o.flag_key = flag ->> 'flag_key'
            AND (o.expires_at IS NULL OR o.expires_at > now())
            AND (o.plan_preset_id = p.id
                OR o.carry_over AND have_same_flag(ended.flags, p.flags, o.flag_key))
        ORDER BY o.plan_preset_id = p.id DESC
        LIMIT 1
    ) o ON true
    WHERE t.id = wanted_tenant_id
        AND (wanted_feature IS NULL OR flag ->> 'flag_key' = wanted_feature)
        AND flag ->> 'flag_type' = 'limit'
$$
"""
OLD_TENANT_LIMITS = """
CREATE OR REPLACE FUNCTION tenant_limits(wanted_tenant_id uuid, wanted_feature text)
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

# As before, but while a plan is assigned no subscription decides the plan: the day on which the
# tenant was created counts.
USAGE_PERIOD = """
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
            LEFT JOIN LATERAL (
                SELECT s.start_date, s.billing_cycle FROM subscriptions s
                WHERE s.tenant_id = t.id AND s.status_class <> 'ended' {unless_assigned}
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
UNLESS_ASSIGNED = """AND NOT EXISTS (
                        SELECT FROM plan_assignments a
                        WHERE a.tenant_id = t.id AND (a.until IS NULL OR a.until > moment)
                    )"""


def upgrade():
    op.add_column(
        "plan_presets", sa.Column("display_name", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "plan_presets",
        sa.Column("has_new_name", sa.Boolean(), server_default="false", nullable=False),
    )
    op.add_column(
        "feature_overrides",
        sa.Column("carry_over", sa.Boolean(), server_default="false", nullable=False),
    )
    op.create_table(
        "plan_assignments",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ending_announced_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("plan_name", sa.Text(), nullable=False),
        sa.Column("next_plan_name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_plan_assignments_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_plan_assignments")),
    )
    op.create_index(op.f("ix_plan_assignments_until"), "plan_assignments", ["until"])
    op.create_index(
        op.f("ix_plan_assignments_next_plan_name"), "plan_assignments", ["next_plan_name"]
    )
    isolate("plan_assignments")
    op.execute(HAVE_SAME_FLAG)
    op.execute(FOLLOW_PLAN)
    op.execute(TENANT_LIMITS)
    op.execute(USAGE_PERIOD.replace("{unless_assigned}", UNLESS_ASSIGNED))


def downgrade():
    op.execute(USAGE_PERIOD.replace(" {unless_assigned}", ""))
    op.execute(OLD_TENANT_LIMITS)
    op.execute("DROP FUNCTION follow_plan(uuid, text, timestamptz)")
    op.execute("DROP FUNCTION have_same_flag(json, json, text)")
    op.drop_table("plan_assignments")
    op.drop_column("feature_overrides", "carry_over")
    op.drop_column("plan_presets", "has_new_name")
    op.drop_column("plan_presets", "display_name")
