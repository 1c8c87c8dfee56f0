"""Indexes for ``updated_after=``; BRIN indexes allow HOT updates."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TABLES = (
    "tenants",
    "users",
    "memberships",
    "subscriptions",
    "custom_fields",
    "feature_overrides",
    "api_keys",
)


def upgrade():
    with op.get_context().autocommit_block():
        for table in TABLES:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS ix_{table}_updated_at")
            op.execute(
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_{table}_updated_at ON {table}"
                " USING brin (updated_at) WITH (pages_per_range = 16, autosummarize = true)"
            )


def downgrade():
    for table in TABLES:
        op.execute(f"DROP INDEX ix_{table}_updated_at")
