"""Domains of tenants, join requests, and the domains of verified addresses."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)
INDEX = "ix_identity_objects_verified_domain_object_id"


def upgrade():
    with op.get_context().autocommit_block():
        op.execute(
            'ALTER TABLE identity_objects ADD COLUMN IF NOT EXISTS verified_domain text COLLATE "C"'
        )
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX}"
            " ON identity_objects (verified_domain, object_id) WHERE verified_domain IS NOT NULL"
        )
    op.create_table(
        "domains",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("checked_at", MOMENT, nullable=True),
        sa.Column("next_check_at", MOMENT, nullable=True),
        sa.Column("verified_at", MOMENT, nullable=True),
        sa.Column("unconfirmed_since", MOMENT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("include_subdomains", sa.Boolean(), nullable=False),
        sa.Column("enforce_sso", sa.Boolean(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("record_name", sa.Text(), nullable=False),
        sa.Column("record_value", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("join", sa.Text(), nullable=False),
        sa.Column("join_role", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_domains_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_domains")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_domains_tenant_id_name")),
    )
    op.create_index(
        "uq_domains_verified_name",
        "domains",
        ["name"],
        unique=True,
        postgresql_where=sa.text("state = 'verified'"),
    )
    op.create_index(
        op.f("ix_domains_next_check_at"),
        "domains",
        ["next_check_at"],
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )
    op.create_table(
        "join_requests",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("idp_user_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("first_name", sa.Text(), nullable=False),
        sa.Column("last_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_join_requests_tenant_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_join_requests_tenant_id_user_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_join_requests")),
        sa.UniqueConstraint(
            "tenant_id", "idp_user_id", name=op.f("uq_join_requests_tenant_id_idp_user_id")
        ),
    )
    op.create_index(op.f("ix_join_requests_idp_user_id"), "join_requests", ["idp_user_id"])
    for columns in (["user_id"], ["state", "created_at", "id"]):
        name = op.f(f"ix_join_requests_tenant_id_{'_'.join(columns)}")
        op.create_index(name, "join_requests", ["tenant_id", *columns])
    op.create_index(op.f("ix_domains_name"), "domains", ["name"])
    for table in ("domains", "join_requests"):
        for columns in (
            ["id"],
            ["tenant_id", "created_at", "id"],
            ["state", "created_at", "id"],
            ["created_at", "id"],
        ):
            op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)
        op.create_index(
            op.f(f"ix_{table}_updated_at"),
            table,
            ["updated_at"],
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 16, "autosummarize": True},
        )
        isolate(table)


def downgrade():
    op.drop_column("identity_objects", "verified_domain")
    op.drop_table("join_requests")
    op.drop_table("domains")
