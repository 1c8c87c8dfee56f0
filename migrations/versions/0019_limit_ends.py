"""Thresholds of seats, and indexes of what ends: overrides, and periods of usage."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "lock_seat_limit")
    op.add_column(
        "feature_overrides",
        sa.Column("announced_expiry", postgresql.TIMESTAMP(timezone=True), nullable=True),
        if_not_exists=True,
    )
    op.execute("SET LOCAL app.platform = 'on'")  # row-level security also applies to the owner
    op.execute(
        "UPDATE feature_overrides SET announced_expiry = expires_at WHERE expires_at <= now()"
    )
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_feature_overrides_expires_at")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_feature_overrides_expires_at"
            " ON feature_overrides (expires_at)"
            " WHERE expires_at IS DISTINCT FROM announced_expiry"
        )
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_usage_counters_period_end")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_usage_counters_period_end"
            " ON usage_counters (period_end) WHERE period_end IS NOT NULL"
        )


def downgrade():
    op.execute("DROP INDEX ix_usage_counters_period_end")
    op.drop_column("feature_overrides", "announced_expiry")
    op.execute("DROP FUNCTION lock_seat_limit(uuid, uuid, uuid)")
