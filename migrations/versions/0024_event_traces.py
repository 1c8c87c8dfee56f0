"""The trace of the request that caused an event, for its deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

TABLES = ("event_outbox", "events")


def upgrade():
    for table in TABLES:
        op.add_column(table, sa.Column("traceparent", sa.Text(), server_default="", nullable=False))


def downgrade():
    for table in TABLES:
        op.drop_column(table, "traceparent")
