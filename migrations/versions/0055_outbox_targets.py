"""The outbox has what the place of an audit row needs, so that no audit row is read for it.

A row that a process of the release before adds has no type of target. Its audit row gets its place
ten minutes later, as older ones do.
"""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column(
        "event_outbox", sa.Column("target_type", sa.Text(), server_default="", nullable=False)
    )
    op.add_column("event_outbox", sa.Column("row_id", sa.Uuid()))


def downgrade():
    op.drop_column("event_outbox", "row_id")
    op.drop_column("event_outbox", "target_type")
