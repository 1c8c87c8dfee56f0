"""The subscription that an event of a billing provider is about."""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

INDEX = "ix_webhook_events_of_subscription"


def upgrade():
    op.execute("ALTER TABLE webhook_events ADD COLUMN IF NOT EXISTS bp_subscription_id text")
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON webhook_events"
            " (bp_subscription_id, created_at, id) WHERE bp_subscription_id IS NOT NULL"
        )


def downgrade():
    op.execute(f"DROP INDEX {INDEX}")
    op.execute("ALTER TABLE webhook_events DROP COLUMN bp_subscription_id")
