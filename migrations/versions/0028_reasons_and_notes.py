"""Reasons of overrides, notes on tenants, and indexes of what wants attention."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_webhook_deliveries_failed": "webhook_deliveries (created_at, id) WHERE status = 'failed'",
    "ix_webhook_endpoint_states_failing": "webhook_endpoint_states (tenant_id, endpoint_id)"
    " WHERE failing_since IS NOT NULL",
    "ix_usage_counters_reached": "usage_counters (period_end) WHERE announced >= 100",
}


def upgrade():
    with op.get_context().autocommit_block():
        for name, definition in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")
    op.add_column(
        "feature_overrides", sa.Column("reason", sa.Text(), server_default="", nullable=False)
    )
    op.create_table(
        "tenant_notes",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_tenant_notes_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenant_notes")),
    )
    isolate("tenant_notes")


def downgrade():
    op.drop_table("tenant_notes")
    op.drop_column("feature_overrides", "reason")
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
