"""Permissions of products, roles, their assignments, and the resources that these name."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from uuid_utils.compat import uuid7

from migrations.security import grant, isolate

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)
READER = ["custom_fields", "flags", "memberships", "tenants", "usage", "users"]
READ = [f"{name}:read" for name in READER]
BILLING = [
    "billing:read", "billing:write", "flags:read", "memberships:read", "tenants:read",
    "usage:read", "users:read",
]  # fmt: skip
ADMIN = [
    "access:read", "api_keys:read", "api_keys:write", "audit:read", "audit:write", "billing:read",
    "billing:write", "custom_fields:read", "custom_fields:write", "domains:read", "domains:write",
    "events:read", "events:write", "flags:read", "flags:write", "memberships:read",
    "memberships:write", "roles:read", "roles:write", "scim:read", "scim:write", "sso:read",
    "tenants:read", "tenants:write", "usage:read", "users:read", "users:write",
]  # fmt: skip
TEMPLATES = {
    "owner": ADMIN,
    "admin": ADMIN,
    "billing": BILLING,
    "member": READ,
    "viewer": READ,
}
READ_TEMPLATES = """
CREATE POLICY templates_are_readable ON roles FOR SELECT USING (
    tenant_id IS NULL AND (SELECT nullif(current_setting('app.tenant_id', true), '')) IS NOT NULL
)
"""


def written():
    """The columns of every row that says who wrote it."""
    return (
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
    )


def upgrade():
    op.create_table(
        "product_permissions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        *written(),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("requires_flag", sa.Text(), nullable=True),
        sa.Column("requires_limit", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_product_permissions")),
        sa.UniqueConstraint("key", name=op.f("uq_product_permissions_key")),
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=True),
        *written(),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("permissions", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("inherits", sa.Text(), nullable=True),
        sa.Column("assignable_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_roles_tenant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roles")),
        sa.UniqueConstraint(
            "tenant_id",
            "key",
            name=op.f("uq_roles_tenant_id_key"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_table(
        "access_resources",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        *written(),
        sa.Column("parent_type", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("attributes", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_access_resources_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "type", "id", name=op.f("pk_access_resources")),
    )
    op.create_table(
        "role_assignments",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("membership_id", sa.Uuid(), nullable=True),
        sa.Column("group_id", sa.Uuid(), nullable=True),
        sa.Column("api_key_id", sa.Uuid(), nullable=True),
        sa.Column("role_id", sa.Uuid(), nullable=False),
        *written(),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("resource_type", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "num_nonnulls(membership_id, group_id, api_key_id) = 1",
            name=op.f("ck_role_assignments_target"),
        ),
        sa.CheckConstraint(
            "(resource_type IS NULL) = (resource_id IS NULL)",
            name=op.f("ck_role_assignments_resource"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_role_assignments_tenant_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "membership_id"],
            ["memberships.tenant_id", "memberships.id"],
            name=op.f("fk_role_assignments_tenant_id_membership_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["scim_groups.tenant_id", "scim_groups.id"],
            name=op.f("fk_role_assignments_tenant_id_group_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["api_key_id"],
            ["api_keys.id"],
            name=op.f("fk_role_assignments_api_key_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["role_id"], ["roles.id"], name=op.f("fk_role_assignments_role_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "resource_type", "resource_id"],
            ["access_resources.tenant_id", "access_resources.type", "access_resources.id"],
            name=op.f("fk_role_assignments_tenant_id_resource_type_resource_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_role_assignments")),
    )
    for table, *indexes in (
        ("product_permissions", ["created_at", "id"]),
        ("roles", ["tenant_id", "created_at", "id"], ["created_at", "id"], ["key"]),
        (
            "access_resources",
            ["type", "tenant_id", "id"],
            ["tenant_id", "parent_type", "parent_id"],
        ),
        (
            "role_assignments",
            ["id"],
            ["tenant_id", "created_at", "id"],
            ["created_at", "id"],
            ["tenant_id", "role_id", "created_at", "id"],
            ["role_id", "created_at", "id"],
            ["tenant_id", "resource_type", "resource_id", "created_at", "id"],
        ),
    ):
        for columns in indexes:
            op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)
        op.create_index(
            op.f(f"ix_{table}_updated_at"),
            table,
            ["updated_at"],
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 16, "autosummarize": True},
        )
    op.create_index(
        op.f("ix_roles_inherits"),
        "roles",
        ["inherits"],
        postgresql_where=sa.text("inherits IS NOT NULL"),
    )
    for target in ("membership_id", "group_id", "api_key_id"):
        op.create_index(
            f"uq_role_assignments_{target}",
            "role_assignments",
            [target, "tenant_id", "role_id", "resource_type", "resource_id"],
            unique=True,
            postgresql_nulls_not_distinct=True,
            postgresql_where=sa.text(f"{target} IS NOT NULL"),
        )
    op.create_index(
        op.f("ix_role_assignments_expires_at"),
        "role_assignments",
        ["expires_at"],
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    insert = sa.text(
        "INSERT INTO roles (id, created_at, updated_at, version, created_by_user_id,"
        " updated_by_user_id, key, name, permissions, assignable_by) VALUES"
        " (:id, now(), now(), 1, 'system:job', 'system:job', :key, :name,"
        " CAST(:permissions AS text[]), :assignable_by)"
    )
    for key, permissions in TEMPLATES.items():
        values = {"id": uuid7(), "key": key, "name": key.capitalize(), "permissions": permissions}
        by = "owner" if key == "owner" else "admin"
        op.get_bind().execute(insert, {**values, "assignable_by": by})
    grant("product_permissions")
    for table in ("roles", "access_resources", "role_assignments"):
        isolate(table)
    op.execute(READ_TEMPLATES)


def downgrade():
    for table in ("role_assignments", "access_resources", "roles", "product_permissions"):
        op.drop_table(table)
