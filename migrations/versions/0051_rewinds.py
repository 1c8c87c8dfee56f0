"""Rewinds of tenants."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)
UNFINISHED = sa.text("finished_at IS NULL")


def upgrade():
    op.create_table(
        "rewinds",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("last_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("to_time", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("to_position", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("left_out_total", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("only", sa.JSON(), nullable=True),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_rewinds_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_rewinds")),
    )
    for columns in (["id"], ["tenant_id", "created_at", "id"], ["created_at", "id"]):
        op.create_index(op.f(f"ix_rewinds_{'_'.join(columns)}"), "rewinds", columns)
    op.create_index(
        "uq_rewinds_unfinished", "rewinds", ["tenant_id"], unique=True, postgresql_where=UNFINISHED
    )
    op.create_index("ix_rewinds_unfinished", "rewinds", ["updated_at"], postgresql_where=UNFINISHED)
    op.create_index(
        op.f("ix_rewinds_updated_at"),
        "rewinds",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    isolate("rewinds")


def downgrade():
    op.drop_table("rewinds")
