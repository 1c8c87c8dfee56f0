"""Why a tenant is suspended."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column(
        "tenants",
        sa.Column("suspension_reason", sa.Text(), server_default="", nullable=False),
    )


def downgrade():
    op.drop_column("tenants", "suspension_reason")
