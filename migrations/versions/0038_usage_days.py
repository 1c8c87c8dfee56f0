"""Usage by day, and when a forecast of a limit's end was recorded."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade():
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_usage_counters_ends")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_usage_counters_ends"
            " ON usage_counters (period_end, tenant_id, feature, period_start)"
        )
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_usage_counters_period_end")
    op.create_table(
        "usage_days",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("period_start", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_usage_days_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "feature", "period_start", "day", name=op.f("pk_usage_days")
        ),
    )
    op.create_index(op.f("ix_usage_days_day"), "usage_days", ["day"])
    isolate("usage_days")
    op.add_column(
        "usage_counters",
        sa.Column("forecast_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
    )
    op.execute("SET LOCAL app.platform = 'on'")  # row-level security also applies to the owner
    op.execute(
        "INSERT INTO usage_days (tenant_id, feature, period_start, day, used, added)"
        " SELECT tenant_id, feature, period_start, (now() AT TIME ZONE 'UTC')::date - 1, used, 0"
        " FROM usage_counters WHERE used > 0 AND (period_end IS NULL OR period_end > now())"
        " AND period_start < date_trunc('day', now(), 'UTC')"
    )
    install(revision, "usage_by_day", "store_usage_days", "forecast_usage", "take_forecasts")


def downgrade():
    op.execute("DROP FUNCTION take_forecasts(uuid[], text[], timestamptz[])")
    op.execute("DROP FUNCTION forecast_usage(uuid, text)")
    op.execute("DROP FUNCTION store_usage_days(timestamptz, uuid, text, timestamptz, int)")
    op.execute("DROP FUNCTION usage_by_day(uuid, text, int)")
    op.drop_column("usage_counters", "forecast_at")
    op.drop_table("usage_days")
    op.execute("DROP INDEX ix_usage_counters_ends")
    op.create_index(
        "ix_usage_counters_period_end",
        "usage_counters",
        ["period_end"],
        postgresql_where="period_end IS NOT NULL",
    )
