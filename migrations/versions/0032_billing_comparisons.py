"""Comparisons with billing providers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "billing_comparisons",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.Column("after", sa.Uuid(), nullable=True),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_billing_comparisons")),
        sa.UniqueConstraint("provider", name=op.f("uq_billing_comparisons_provider")),
    )
    grant("billing_comparisons")


def downgrade():
    op.drop_table("billing_comparisons")
