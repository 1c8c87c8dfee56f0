"""SCIM: connections of directories, the users and groups they provision, and their last requests."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TABLES = ("scim_requests", "scim_members", "scim_groups", "scim_users", "scim_connections")
MOMENT = postgresql.TIMESTAMP(timezone=True)


def row_columns():
    return (
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
    )


def of_connection(table):
    return sa.ForeignKeyConstraint(
        ["tenant_id", "connection_id"],
        ["scim_connections.tenant_id", "scim_connections.id"],
        name=op.f(f"fk_{table}_tenant_id_connection_id"),
        ondelete="CASCADE",
    )


def upgrade():
    op.create_table(
        "scim_connections",
        *row_columns(),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("default_role", sa.Text(), nullable=False),
        sa.Column("group_roles", sa.JSON(), nullable=False),
        sa.Column("deactivate", sa.Text(), nullable=False),
        sa.Column("acts_as", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("old_digest", sa.Text(), nullable=True),
        sa.Column("old_expires_at", MOMENT, nullable=True),
        sa.Column("last_request_at", MOMENT, nullable=True),
        sa.Column("request_count", sa.BigInteger(), nullable=False),
        sa.Column("error_count", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("last_error_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_scim_connections_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_scim_connections")),
    )
    op.execute("ALTER TABLE scim_connections SET (fillfactor = 50)")  # each request updates a row
    for columns in (
        ["id"],
        ["digest"],
        ["old_digest"],
        ["tenant_id", "created_at", "id"],
        ["created_at", "id"],
    ):
        op.create_index(
            op.f(f"ix_scim_connections_{'_'.join(columns)}"), "scim_connections", columns
        )
    op.create_index(
        op.f("ix_scim_connections_updated_at"),
        "scim_connections",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    op.create_table(
        "scim_users",
        *row_columns(),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("user_name_key", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("has_mapped_role", sa.Boolean(), nullable=False),
        sa.Column("deleted_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_scim_users_tenant_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_scim_users_tenant_id_id"),
            ondelete="CASCADE",
        ),
        of_connection("scim_users"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_scim_users")),
    )
    op.create_index(
        "uq_scim_users_user_name_key",
        "scim_users",
        ["tenant_id", "connection_id", "user_name_key"],
        unique=True,
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "scim_groups",
        *row_columns(),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("display_name_key", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_scim_groups_tenant_id")
        ),
        of_connection("scim_groups"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_scim_groups")),
        sa.UniqueConstraint(
            "tenant_id",
            "connection_id",
            "display_name_key",
            name=op.f("uq_scim_groups_tenant_id_connection_id_display_name_key"),
        ),
    )
    for table in ("scim_users", "scim_groups"):
        for columns in (
            ["id"],
            ["tenant_id", "connection_id", "external_id"],
            ["tenant_id", "connection_id", "id"],
        ):
            op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)
    op.create_table(
        "scim_members",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("group_id", sa.Uuid(), nullable=False),
        sa.Column("member_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("nested_id", sa.Uuid(), nullable=True),
        sa.Column("display", sa.Text(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                ["tenant_id", column],
                [f"{target}.tenant_id", f"{target}.id"],
                name=op.f(f"fk_scim_members_tenant_id_{column}"),
                ondelete="CASCADE",
            )
            for column, target in (
                ("group_id", "scim_groups"),
                ("user_id", "scim_users"),
                ("nested_id", "scim_groups"),
            )
        ),
        sa.PrimaryKeyConstraint("tenant_id", "group_id", "member_id", name=op.f("pk_scim_members")),
    )
    for column in ("user_id", "nested_id"):
        op.create_index(
            op.f(f"ix_scim_members_tenant_id_{column}"), "scim_members", ["tenant_id", column]
        )
    op.create_table(
        "scim_requests",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("connection_id", sa.Uuid(), nullable=False),
        sa.Column("slot", sa.SmallInteger(), nullable=False),
        sa.Column("sent_at", MOMENT, nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        of_connection("scim_requests"),
        sa.PrimaryKeyConstraint(
            "tenant_id", "connection_id", "slot", name=op.f("pk_scim_requests")
        ),
    )
    for table in TABLES:
        isolate(table)
    install(revision, "authenticate_scim")


def downgrade():
    op.execute("DROP FUNCTION authenticate_scim(text)")
    for table in TABLES:
        op.drop_table(table)
