"""SSO connections, as the identity provider reports them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)
TEXTS = ("source", "idp_connection_id", "name", "provider", "type", "state")
UNIQUE = ["tenant_id", "source", "idp_connection_id"]


def upgrade():
    op.create_table(
        "sso_connections",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.Column("certificate_ends_at", MOMENT, nullable=True),
        sa.Column("announced_end", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_sso_connections_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_sso_connections")),
        sa.UniqueConstraint(*UNIQUE, name=op.f(f"uq_sso_connections_{'_'.join(UNIQUE)}")),
    )
    for columns in (["id"], ["tenant_id", "created_at", "id"], ["created_at", "id"]):
        op.create_index(op.f(f"ix_sso_connections_{'_'.join(columns)}"), "sso_connections", columns)
    op.create_index(
        op.f("ix_sso_connections_certificate_ends_at"),
        "sso_connections",
        ["certificate_ends_at"],
        postgresql_where=sa.text("certificate_ends_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_sso_connections_updated_at"),
        "sso_connections",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    isolate("sso_connections")


def downgrade():
    op.drop_table("sso_connections")
