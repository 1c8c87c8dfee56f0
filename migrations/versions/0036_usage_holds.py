"""Holds and leases of limits. The next revision installs their functions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade():
    op.execute("ALTER TABLE usage_counters ADD COLUMN held bigint NOT NULL DEFAULT 0")
    op.create_table(
        "usage_holds",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("ended_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("period_start", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("digest", sa.Uuid(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("over_by", sa.BigInteger(), nullable=False),
        sa.Column("remaining", sa.BigInteger(), nullable=True),
        sa.Column("ttl_seconds", sa.BigInteger(), nullable=False),
        sa.Column("is_late", sa.Boolean(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_usage_holds")),
    )
    op.create_index(op.f("ix_usage_holds_id"), "usage_holds", ["id"])
    op.create_index(
        op.f("ix_usage_holds_tenant_id_created_at_id"),
        "usage_holds",
        ["tenant_id", "created_at", "id"],
    )
    op.create_index(
        "ix_usage_holds_open",
        "usage_holds",
        ["tenant_id", "feature", "period_start", "expires_at"],
        postgresql_where="state = 'open'",
    )
    op.create_index(
        "ix_usage_holds_unsettled",
        "usage_holds",
        ["tenant_id", "state", "created_at", "id"],
        postgresql_where="state IN ('expired', 'released')",
    )
    op.create_index(
        op.f("ix_usage_holds_ended_at"),
        "usage_holds",
        ["ended_at"],
        postgresql_where="ended_at IS NOT NULL",
    )
    op.create_index(
        op.f("ix_usage_holds_tenant_id_digest"),
        "usage_holds",
        ["tenant_id", "digest"],
        unique=True,
        postgresql_where="digest IS NOT NULL",
    )
    isolate("usage_holds")


def downgrade():
    op.drop_table("usage_holds")
    op.drop_column("usage_counters", "held")
