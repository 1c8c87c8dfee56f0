"""An index of the API keys that will expire, which `/metrics` counts."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade():
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_api_keys_expires_at")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_api_keys_expires_at"
            " ON api_keys (expires_at) WHERE revoked_at IS NULL"
        )


def downgrade():
    op.execute("DROP INDEX ix_api_keys_expires_at")
