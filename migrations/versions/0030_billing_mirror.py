"""Prices that give plans, customers of billing providers, and what a mirrored subscription has."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import grant, isolate

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def subscription_columns():
    return (
        sa.Column("bp_provider", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), server_default="", nullable=False),
        sa.Column("trial_end", MOMENT, nullable=True),
        sa.Column("current_period_end", MOMENT, nullable=True),
        sa.Column("items", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("collection_is_paused", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("limits", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("read_at", MOMENT, nullable=True),
        sa.Column("missing_since", MOMENT, nullable=True),
    )


def row_columns():
    return (
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
    )


def upgrade():
    for column in subscription_columns():
        op.add_column("subscriptions", column)
    op.create_table(
        "plan_prices",
        *row_columns(),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("price_id", sa.Text(), nullable=True),
        sa.Column("lookup_key", sa.Text(), nullable=True),
        sa.Column("plan_name", sa.Text(), nullable=False),
        sa.Column("limit_key", sa.Text(), nullable=True),
        sa.Column("sort_order", sa.BigInteger(), nullable=False),
        sa.Column("is_pending", sa.Boolean(), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plan_prices")),
        *(
            sa.UniqueConstraint("provider", name, name=op.f(f"uq_plan_prices_provider_{name}"))
            for name in ("price_id", "lookup_key")
        ),
    )
    op.create_index(op.f("ix_plan_prices_created_at_id"), "plan_prices", ["created_at", "id"])
    grant("plan_prices")
    op.create_table(
        "billing_customers",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        *row_columns(),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("is_manual", sa.Boolean(), nullable=False),
        sa.Column("source_timestamp", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_billing_customers_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_billing_customers")),
        sa.UniqueConstraint(
            "customer_id", "provider", name=op.f("uq_billing_customers_customer_id_provider")
        ),
    )
    for columns in (["id"], ["tenant_id", "created_at", "id"], ["created_at", "id"]):
        op.create_index(
            op.f(f"ix_billing_customers_{'_'.join(columns)}"), "billing_customers", columns
        )
    op.create_index(
        op.f("ix_billing_customers_updated_at"),
        "billing_customers",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    isolate("billing_customers")
    install(revision, "plan_of_items")


def downgrade():
    op.execute("DROP FUNCTION plan_of_items(text, json)")
    op.drop_table("billing_customers")
    op.drop_table("plan_prices")
    for column in subscription_columns():
        op.drop_column("subscriptions", column.name)
