"""Limits: the counters of what tenants use, and the functions that find a limit and count."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


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
    install(revision, "tenant_limits", "usage_period", "count_seats", "lock_usage", "tenant_usage")
    install(revision, "consume_usage", "lock_seats")


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
