"""The terms of the search, and how far they are built for the rows that exist."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant, isolate

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# A worker begins with these builds when it sees them.
UNFINISHED = """
INSERT INTO search_builds (entity_type, is_settled, done, total, updated_at)
SELECT entity_type, false, 0, 0, now()
FROM unnest(ARRAY['tenant', 'user', 'subscription', 'email_message']) AS entity_type
"""


def upgrade():
    op.create_table(
        "search_terms",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("term", sa.Text(collation="C"), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "entity_type", "term", "entity_id", name=op.f("pk_search_terms")
        ),
    )
    op.create_index(
        op.f("ix_search_terms_entity_type_term_tenant_id_entity_id"),
        "search_terms",
        ["entity_type", "term", "tenant_id", "entity_id"],
    )
    isolate("search_terms")
    op.create_table(
        "search_builds",
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("is_settled", sa.Boolean(), nullable=False),
        sa.Column("position", sa.Uuid(), nullable=True),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("entity_type", name=op.f("pk_search_builds")),
    )
    grant("search_builds")
    op.execute(UNFINISHED)


def downgrade():
    op.drop_table("search_builds")
    op.drop_table("search_terms")
