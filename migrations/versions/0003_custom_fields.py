"""Custom fields and their search index."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import isolate

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A field belongs to one tenant. Without these statistics the planner expects one row of each search.
STATISTICS = """
CREATE STATISTICS st_custom_field_index_rows_tenant_id_field_id (dependencies)
ON tenant_id, field_id FROM custom_field_index_rows
"""


def upgrade():
    op.create_table(
        "custom_fields",
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("field_key", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("field_type", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=True),
        sa.Column("is_required", sa.Boolean(), nullable=False),
        sa.Column("is_searchable", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("sort_order", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("idp_org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "idp_org_id"],
            ["tenants.id", "tenants.idp_org_id"],
            name=op.f("fk_custom_fields_tenant_id_idp_org_id"),
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_custom_fields")),
        sa.UniqueConstraint(
            "tenant_id",
            "entity_type",
            "field_key",
            name=op.f("uq_custom_fields_tenant_id_entity_type_field_key"),
        ),
    )
    op.create_index(op.f("ix_custom_fields_created_at_id"), "custom_fields", ["created_at", "id"])
    op.create_index(
        op.f("ix_custom_fields_field_type_created_at_id"),
        "custom_fields",
        ["field_type", "created_at", "id"],
    )
    op.create_index(op.f("ix_custom_fields_id"), "custom_fields", ["id"])
    op.create_index(
        op.f("ix_custom_fields_tenant_id_created_at_id"),
        "custom_fields",
        ["tenant_id", "created_at", "id"],
    )
    op.create_table(
        "custom_field_indexes",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("field_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("is_settled", sa.Boolean(), nullable=False),
        sa.Column("position", sa.Uuid(), nullable=True),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("built_version", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "field_id"],
            ["custom_fields.tenant_id", "custom_fields.id"],
            name=op.f("fk_custom_field_indexes_tenant_id_field_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "field_id", name=op.f("pk_custom_field_indexes")),
    )
    op.create_index(
        "ix_custom_field_indexes_unsettled",
        "custom_field_indexes",
        ["updated_at"],
        postgresql_where=sa.text("is_settled IS false"),
    )
    op.create_table(
        "custom_field_index_rows",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("field_id", sa.Uuid(), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), nullable=False),
        sa.Column("text_key", sa.Text(collation="C"), nullable=True),
        sa.Column("text_rest", sa.Text(collation="C"), nullable=True),
        sa.Column("number_value", sa.Double(), nullable=True),
        sa.Column("exact_value", sa.Numeric(), nullable=True),
        sa.Column("date_value", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "field_id",
            "entity_id",
            "ordinal",
            name=op.f("pk_custom_field_index_rows"),
        ),
    )
    for column in ("text_key", "number_value", "date_value"):
        op.create_index(
            f"ix_custom_field_index_rows_{column}",
            "custom_field_index_rows",
            ["tenant_id", "field_id", column, "entity_id"],
            postgresql_where=sa.text(f"{column} IS NOT NULL"),
        )
    op.execute(STATISTICS)
    isolate("custom_fields")
    isolate("custom_field_indexes")
    isolate("custom_field_index_rows")
    install(revision, "lock_custom_fields", "custom_field_rules")


def downgrade():
    op.execute("DROP FUNCTION custom_field_rules(uuid, text)")
    op.execute("DROP FUNCTION lock_custom_fields(uuid, text)")
    op.drop_table("custom_field_index_rows")
    op.drop_table("custom_field_indexes")
    op.drop_table("custom_fields")
