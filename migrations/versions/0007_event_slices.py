"""How much of a webhook event is applied, and an index of every stored payload that may be removed."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = "webhook_events"
STORED = "ix_webhook_events_stored_bodies", "body IS NOT NULL"
KEPT = "ix_webhook_events_kept_bodies", "body IS NOT NULL AND status IN ('succeeded', 'ignored')"


def upgrade():
    replace_index(KEPT, STORED)
    op.add_column(
        TABLE, sa.Column("applied_parts", sa.BigInteger(), server_default="0", nullable=False)
    )


def downgrade():
    replace_index(STORED, KEPT)
    op.drop_column(TABLE, "applied_parts")


def replace_index(old, new):
    """Build the new index, then drop the old one; each without a lock, and again after a failure."""
    name, condition = new
    with op.get_context().autocommit_block():
        drop_index(name)  # a build that failed leaves an invalid index
        op.create_index(
            name,
            TABLE,
            ["processed_at"],
            postgresql_where=sa.text(condition),
            postgresql_concurrently=True,
            if_not_exists=True,
        )
        drop_index(old[0])


def drop_index(name):
    op.drop_index(name, TABLE, postgresql_concurrently=True, if_exists=True)
