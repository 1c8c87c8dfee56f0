"""The order of the audit trail, kept as long as its rows."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

ZERO = "00000000-0000-0000-0000-000000000000"
FEED = {
    "ordered_at": (postgresql.TIMESTAMP(timezone=True), "'-infinity'"),
    "ordered_id": (sa.Uuid(), f"'{ZERO}'"),
    "ordered_position": (sa.BigInteger(), "0"),
    "ordered_count": (sa.BigInteger(), "0"),
}


def upgrade():
    for name, (kind, default) in FEED.items():
        column = sa.Column(name, kind, server_default=sa.text(default), nullable=False)
        op.add_column("event_feed", column)
    op.create_table(
        "audit_positions",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("target_type", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "position", "number", name=op.f("pk_audit_positions")),
    )
    columns = ["tenant_id", "target_type", "row_id", "position", "number"]
    op.create_index(op.f(f"ix_audit_positions_{'_'.join(columns)}"), "audit_positions", columns)
    op.create_index(
        op.f("ix_audit_positions_tenant_id_id"), "audit_positions", ["tenant_id", "id"], unique=True
    )
    op.create_index(
        op.f("ix_audit_positions_position_number"), "audit_positions", ["position", "number"]
    )
    isolate("audit_positions", "SELECT, INSERT, DELETE")
    install(revision, "audit_target")


def downgrade():
    op.execute("DROP FUNCTION audit_target(text, json)")
    op.drop_table("audit_positions")
    for name in FEED:
        op.drop_column("event_feed", name)
