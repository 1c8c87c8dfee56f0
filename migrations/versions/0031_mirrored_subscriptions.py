"""Index of the subscriptions that a billing provider's events keep current."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

INDEX = "ix_subscriptions_bp_provider_id"


def upgrade():
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON subscriptions (bp_provider, id)"
            " WHERE bp_provider IS NOT NULL"
        )


def downgrade():
    op.execute(f"DROP INDEX {INDEX}")
