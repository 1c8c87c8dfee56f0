"""The provider's time of a customer's metadata. No process owns a comparison any more."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.add_column("billing_customers", sa.Column("source_timestamp", MOMENT, nullable=True))
    op.drop_column("billing_comparisons", "busy_until")


def downgrade():
    op.add_column("billing_comparisons", sa.Column("busy_until", MOMENT, nullable=True))
    op.drop_column("billing_customers", "source_timestamp")
