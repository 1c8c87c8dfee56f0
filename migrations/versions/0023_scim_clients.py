"""SCIM's addresses for filters, and OAuth client credentials."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column(
        "scim_connections",
        sa.Column("public_keys", sa.JSON(), nullable=False, server_default="[]"),
    )
    op.create_table(
        "scim_access_tokens",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("assertion_digest", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "connection_id"],
            ["scim_connections.tenant_id", "scim_connections.id"],
            name=op.f("fk_scim_access_tokens_tenant_id_connection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "connection_id", "digest", name=op.f("pk_scim_access_tokens")
        ),
        sa.UniqueConstraint(
            "tenant_id",
            "connection_id",
            "assertion_digest",
            name=op.f("uq_scim_access_tokens_tenant_id_connection_id_assertion_digest"),
        ),
    )
    op.create_index(op.f("ix_scim_access_tokens_digest"), "scim_access_tokens", ["digest"])
    isolate("scim_access_tokens")
    install(revision, "authenticate_scim", "find_scim_client")
    op.create_table(
        "scim_emails",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("display", sa.Text(), nullable=False),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["scim_users.tenant_id", "scim_users.id"],
            name=op.f("fk_scim_emails_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "position", name=op.f("pk_scim_emails")),
    )
    op.create_index(op.f("ix_scim_emails_value"), "scim_emails", ["value"], postgresql_using="hash")
    isolate("scim_emails")
    op.execute("SET LOCAL app.platform = 'on'")  # row-level security also applies to the owner
    op.execute(
        "INSERT INTO scim_emails (tenant_id, user_id, position, value, type, display, is_primary)"
        " SELECT u.tenant_id, u.id, e.position - 1, lower(coalesce(e.email ->> 'value', '')),"
        " lower(coalesce(e.email ->> 'type', '')), lower(coalesce(e.email ->> 'display', '')),"
        " coalesce(e.email ->> 'primary' = 'true', false)"
        " FROM scim_users u CROSS JOIN LATERAL json_array_elements(u.attributes -> 'emails')"
        " WITH ORDINALITY AS e (email, position) WHERE e.position <= 100"
    )


def downgrade():
    op.execute("DROP FUNCTION find_scim_client(uuid)")
    install("0020", "authenticate_scim")
    op.drop_table("scim_emails")
    op.drop_table("scim_access_tokens")
    op.drop_column("scim_connections", "public_keys")
