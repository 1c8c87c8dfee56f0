"""Bases of the past: all rows of a tenant as of some positions."""

from importlib import import_module

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

PAST = import_module("migrations.versions.0050_past_rights")


def upgrade():
    op.create_table(
        "past_bases",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("target_type", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "position", "target_type", "row_id", name=op.f("pk_past_bases")
        ),
    )
    isolate("past_bases")
    based = sa.Column(
        "based_position", sa.BigInteger(), server_default=sa.text("0"), nullable=False
    )
    op.add_column("event_feed", based)
    install(revision, "past.starts", "past.changes", "past.rows", "past.oldest", "past.define")
    install(revision, "past.lock_bases", "past.write_base", "past.add_base")
    install(revision, "past.write_bases_again", "audit_place")
    for table, kind in PAST.TABLES.items():
        op.execute(f"SELECT past.define('{table}', '{kind}')")
    install(revision, "past.plans_in_force")  # depends on past.tenants
    op.execute("GRANT SELECT ON ALL TABLES IN SCHEMA past TO PUBLIC")


def downgrade():
    op.execute("DROP FUNCTION audit_place")
    op.execute("DROP SCHEMA past CASCADE")
    op.drop_table("past_bases")
    op.drop_column("event_feed", "based_position")
    PAST.PAST.upgrade()
    PAST.upgrade()
