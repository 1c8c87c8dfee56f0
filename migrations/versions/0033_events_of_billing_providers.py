"""Index of the newest events of each billing provider."""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

INDEX = "ix_webhook_events_of_billing"
PROVIDERS = "'stripe', 'paddle', 'chargebee', 'lemonsqueezy', 'polar'"


def upgrade():
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON webhook_events (source, created_at)"
            f" WHERE source IN ({PROVIDERS})"
        )


def downgrade():
    op.execute(f"DROP INDEX {INDEX}")
