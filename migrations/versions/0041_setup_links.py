"""Setup links, and the sessions of the browsers that opened them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "setup_links",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("session_digest", sa.Text(), nullable=True),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("opened_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_setup_links_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_setup_links")),
    )
    for columns in (
        ["id"],
        ["digest"],
        ["session_digest"],
        ["expires_at"],
        ["tenant_id", "created_at", "id"],
        ["created_at", "id"],
    ):
        op.create_index(op.f(f"ix_setup_links_{'_'.join(columns)}"), "setup_links", columns)
    op.create_index(
        op.f("ix_setup_links_updated_at"),
        "setup_links",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    isolate("setup_links")
    install(revision, "authenticate_setup_link")


def downgrade():
    op.execute("DROP FUNCTION authenticate_setup_link(text)")
    op.drop_table("setup_links")
