"""SCIM's addresses for filters, and OAuth client credentials."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

# Of migration 0020, and also by access tokens.
AUTHENTICATE_SCIM = """
CREATE OR REPLACE FUNCTION authenticate_scim(wanted_digest text)
RETURNS TABLE (
    id uuid, tenant_id uuid, acts_as text, status text, default_role text, group_roles json,
    deactivate text, tenant_is_active boolean
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('app.platform', 'on', true), set_config('app.tenant_id', '', true);
    SELECT c.id, c.tenant_id, c.acts_as, c.status, c.default_role, c.group_roles, c.deactivate,
            t.is_active
        INTO id, tenant_id, acts_as, status, default_role, group_roles, deactivate,
            tenant_is_active
        FROM scim_connections c JOIN tenants t ON t.id = c.tenant_id
        WHERE c.digest = wanted_digest
            OR (c.old_digest = wanted_digest AND c.old_expires_at > now()){or_granted};
    PERFORM set_config('app.platform', '', true),
        set_config('app.tenant_id', coalesce(authenticate_scim.tenant_id::text, ''), true);
    IF authenticate_scim.id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$
"""
OR_GRANTED = """
            OR (c.tenant_id, c.id) = (
                SELECT a.tenant_id, a.connection_id FROM scim_access_tokens a
                WHERE a.digest = wanted_digest AND a.expires_at > now()
            )"""
FIND_SCIM_CLIENT = """
CREATE FUNCTION find_scim_client(client_id uuid)
RETURNS TABLE (
    id uuid, tenant_id uuid, status text, digest text, old_digest text, public_keys json
) LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    PERFORM set_config('app.platform', 'on', true), set_config('app.tenant_id', '', true);
    SELECT c.id, c.tenant_id, c.status, c.digest,
            CASE WHEN c.old_expires_at > now() THEN c.old_digest END, c.public_keys
        INTO id, tenant_id, status, digest, old_digest, public_keys
        FROM scim_connections c WHERE c.id = client_id;
    PERFORM set_config('app.platform', '', true),
        set_config('app.tenant_id', coalesce(find_scim_client.tenant_id::text, ''), true);
    IF find_scim_client.id IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$
"""


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
    op.execute(AUTHENTICATE_SCIM.replace("{or_granted}", OR_GRANTED))
    op.execute(FIND_SCIM_CLIENT)
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
    op.execute(AUTHENTICATE_SCIM.replace("{or_granted}", ""))
    op.drop_table("scim_emails")
    op.drop_table("scim_access_tokens")
    op.drop_column("scim_connections", "public_keys")
