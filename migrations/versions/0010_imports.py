"""Imports, the pieces of their files, and their faults."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "imports",
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("lines_total", sa.BigInteger(), nullable=False),
        sa.Column("lines_done", sa.BigInteger(), nullable=False),
        sa.Column("lines_failed", sa.BigInteger(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imports")),
    )
    op.create_index(op.f("ix_imports_created_at_id"), "imports", ["created_at", "id"])
    op.create_index(
        op.f("ix_imports_state_created_at_id"), "imports", ["state", "created_at", "id"]
    )
    op.create_index(
        "ix_imports_unfinished",
        "imports",
        ["updated_at"],
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_table(
        "import_pieces",
        sa.Column("import_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_id"], ["imports.id"], name=op.f("fk_import_pieces_import_id")
        ),
        sa.PrimaryKeyConstraint("import_id", "number", name=op.f("pk_import_pieces")),
    )
    op.create_table(
        "import_faults",
        sa.Column("import_id", sa.Uuid(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("errors", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_id"], ["imports.id"], name=op.f("fk_import_faults_import_id")
        ),
        sa.PrimaryKeyConstraint("import_id", "line", name=op.f("pk_import_faults")),
    )
    for table in ("imports", "import_pieces", "import_faults"):
        grant(table)


def downgrade():
    op.drop_table("import_faults")
    op.drop_table("import_pieces")
    op.drop_table("imports")
