"""Tenants, users, memberships, credentials, idempotency keys and the audit trail."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import APPEND_ONLY, grant, isolate

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "audit_events",
        sa.Column("tenant_id", sa.UUID(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target_type", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_audit_events")),
    )
    op.create_index(
        op.f("ix_audit_events_created_at_id"), "audit_events", ["created_at", "id"], unique=False
    )
    op.create_index(op.f("ix_audit_events_id"), "audit_events", ["id"], unique=False)
    op.create_index(
        op.f("ix_audit_events_tenant_id_created_at_id"),
        "audit_events",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    for column in ("target_id", "actor", "action"):
        op.create_index(
            op.f(f"ix_audit_events_{column}_created_at_id"),
            "audit_events",
            [column, "created_at", "id"],
        )
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("scope", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(
        op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"], unique=False
    )
    op.create_table(
        "platform_admins",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_platform_admins")),
    )
    op.create_table(
        "tenants",
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("plan_name", sa.Text(), nullable=False),
        sa.Column("primary_contact_name", sa.Text(), nullable=False),
        sa.Column("primary_contact_email", sa.Text(), nullable=False),
        sa.Column("primary_contact_phone", sa.Text(), nullable=False),
        sa.Column("mailing_address_line_1", sa.Text(), nullable=False),
        sa.Column("mailing_address_line_2", sa.Text(), nullable=False),
        sa.Column("mailing_city", sa.Text(), nullable=False),
        sa.Column("mailing_state", sa.Text(), nullable=False),
        sa.Column("mailing_zipcode", sa.Text(), nullable=False),
        sa.Column("mailing_country", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("id", "idp_org_id", name=op.f("uq_tenants_id_idp_org_id")),
        sa.UniqueConstraint("idp_org_id", name=op.f("uq_tenants_idp_org_id")),
        sa.UniqueConstraint("slug", name=op.f("uq_tenants_slug")),
    )
    op.create_index(op.f("ix_tenants_created_at_id"), "tenants", ["created_at", "id"], unique=False)
    op.create_index(
        op.f("ix_tenants_plan_name_created_at_id"), "tenants", ["plan_name", "created_at", "id"]
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.UUID(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("permissions", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("revoked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_api_keys_tenant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_index(op.f("ix_api_keys_created_at_id"), "api_keys", ["created_at", "id"])
    op.create_index(
        op.f("ix_api_keys_tenant_id_created_at_id"), "api_keys", ["tenant_id", "created_at", "id"]
    )
    op.create_table(
        "users",
        sa.Column("idp_user_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("first_name", sa.Text(), nullable=False),
        sa.Column("last_name", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("meta_data", sa.JSON(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.UUID(), nullable=False),
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "idp_org_id"],
            ["tenants.id", "tenants.idp_org_id"],
            name=op.f("fk_users_tenant_id_idp_org_id"),
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_users")),
        sa.UniqueConstraint(
            "tenant_id", "idp_user_id", name=op.f("uq_users_tenant_id_idp_user_id")
        ),
    )
    op.create_index(op.f("ix_users_created_at_id"), "users", ["created_at", "id"], unique=False)
    op.create_index(op.f("ix_users_id"), "users", ["id"], unique=False)
    op.create_index(op.f("ix_users_idp_user_id"), "users", ["idp_user_id"], unique=False)
    op.create_index(
        op.f("ix_users_tenant_id_created_at_id"),
        "users",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_users_email"), "users", ["email"], unique=False, postgresql_using="hash"
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("idp_membership_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.UUID(), nullable=False),
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "idp_org_id"],
            ["tenants.id", "tenants.idp_org_id"],
            name=op.f("fk_memberships_tenant_id_idp_org_id"),
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_memberships_tenant_id_user_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_memberships")),
        sa.UniqueConstraint("tenant_id", "user_id", name=op.f("uq_memberships_tenant_id_user_id")),
    )
    op.create_index(
        op.f("ix_memberships_created_at_id"), "memberships", ["created_at", "id"], unique=False
    )
    op.create_index(op.f("ix_memberships_id"), "memberships", ["id"], unique=False)
    op.create_index(
        op.f("ix_memberships_tenant_id_created_at_id"),
        "memberships",
        ["tenant_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_memberships_tenant_id_idp_membership_id",
        "memberships",
        ["tenant_id", "idp_membership_id"],
        unique=True,
        postgresql_where=sa.text("idp_membership_id <> ''"),
    )
    for table in ("tenants", "api_keys", "platform_admins", "idempotency_keys"):
        grant(table)
    isolate("users")
    isolate("memberships")
    isolate("audit_events", APPEND_ONLY)
    grant("alembic_version", "SELECT")
    install(revision, "must_change_one", "authenticate_user", "authenticate_key", "lock_owners")


def downgrade():
    op.execute("DROP FUNCTION lock_owners(uuid)")
    op.execute("DROP FUNCTION authenticate_key(text)")
    op.execute("DROP FUNCTION authenticate_user(text, text)")
    op.execute("DROP FUNCTION must_change_one(bigint)")
    op.drop_index(
        "uq_memberships_tenant_id_idp_membership_id",
        table_name="memberships",
        postgresql_where=sa.text("idp_membership_id <> ''"),
    )
    op.drop_index(op.f("ix_memberships_tenant_id_created_at_id"), table_name="memberships")
    op.drop_index(op.f("ix_memberships_id"), table_name="memberships")
    op.drop_index(op.f("ix_memberships_created_at_id"), table_name="memberships")
    op.drop_table("memberships")
    op.drop_index(op.f("ix_users_email"), table_name="users", postgresql_using="hash")
    op.drop_index(op.f("ix_users_tenant_id_created_at_id"), table_name="users")
    op.drop_index(op.f("ix_users_idp_user_id"), table_name="users")
    op.drop_index(op.f("ix_users_id"), table_name="users")
    op.drop_index(op.f("ix_users_created_at_id"), table_name="users")
    op.drop_table("users")
    op.drop_index(op.f("ix_api_keys_tenant_id_created_at_id"), table_name="api_keys")
    op.drop_index(op.f("ix_api_keys_created_at_id"), table_name="api_keys")
    op.drop_table("api_keys")
    op.drop_index(op.f("ix_tenants_plan_name_created_at_id"), table_name="tenants")
    op.drop_index(op.f("ix_tenants_created_at_id"), table_name="tenants")
    op.drop_table("tenants")
    op.drop_table("platform_admins")
    op.drop_index(op.f("ix_idempotency_keys_created_at"), table_name="idempotency_keys")
    op.drop_table("idempotency_keys")
    for column in ("target_id", "actor", "action"):
        op.drop_index(op.f(f"ix_audit_events_{column}_created_at_id"), table_name="audit_events")
    op.drop_index(op.f("ix_audit_events_tenant_id_created_at_id"), table_name="audit_events")
    op.drop_index(op.f("ix_audit_events_id"), table_name="audit_events")
    op.drop_index(op.f("ix_audit_events_created_at_id"), table_name="audit_events")
    op.drop_table("audit_events")
