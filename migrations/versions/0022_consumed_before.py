"""Retries of what was counted in the last period; thresholds of another limit are recorded again."""

import sqlalchemy as sa
from alembic import op

from migrations.replaceable import install

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("usage_counters", sa.Column("announced_limit", sa.BigInteger(), nullable=True))
    install(revision, "consume_usage", "lock_seat_limit")


def downgrade():
    install("0019", "lock_seat_limit")
    install("0015", "consume_usage")
    op.drop_column("usage_counters", "announced_limit")
