"""Subscriptions, plan presets and feature overrides."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import grant, isolate

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "plan_presets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plan_presets")),
        sa.UniqueConstraint("name", name=op.f("uq_plan_presets_name")),
    )
    op.create_index(op.f("ix_plan_presets_created_at_id"), "plan_presets", ["created_at", "id"])
    op.create_table(
        "feature_overrides",
        sa.Column("plan_preset_id", sa.Uuid(), nullable=False),
        sa.Column("flag_key", sa.Text(), nullable=False),
        sa.Column("flag_value", sa.JSON(), nullable=False),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_preset_id"],
            ["plan_presets.id"],
            name=op.f("fk_feature_overrides_plan_preset_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_feature_overrides_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_feature_overrides")),
        sa.UniqueConstraint(
            "tenant_id",
            "plan_preset_id",
            "flag_key",
            name=op.f("uq_feature_overrides_tenant_id_plan_preset_id_flag_key"),
        ),
    )
    op.create_index(
        op.f("ix_feature_overrides_created_at_id"), "feature_overrides", ["created_at", "id"]
    )
    for column in ("plan_preset_id", "flag_key"):
        op.create_index(
            op.f(f"ix_feature_overrides_{column}_created_at_id"),
            "feature_overrides",
            [column, "created_at", "id"],
        )
    op.create_index(op.f("ix_feature_overrides_id"), "feature_overrides", ["id"])
    op.create_index(
        op.f("ix_feature_overrides_tenant_id_created_at_id"),
        "feature_overrides",
        ["tenant_id", "created_at", "id"],
    )
    op.create_table(
        "subscriptions",
        sa.Column("bp_subscription_id", sa.Text(), nullable=False),
        sa.Column("bp_customer_id", sa.Text(), nullable=False),
        sa.Column("bp_plan_id", sa.Text(), nullable=False),
        sa.Column("bp_status", sa.Text(), nullable=False),
        sa.Column("status_class", sa.Text(), nullable=False),
        sa.Column("plan_name", sa.Text(), nullable=False),
        sa.Column("is_free_trial", sa.Boolean(), nullable=False),
        sa.Column("start_date", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("auto_renew", sa.Boolean(), nullable=False),
        sa.Column("billing_cycle", sa.Text(), nullable=False),
        sa.Column("per_cycle_billing_amount", sa.BigInteger(), nullable=False),
        sa.Column("billing_address_line_1", sa.Text(), nullable=False),
        sa.Column("billing_city", sa.Text(), nullable=False),
        sa.Column("billing_state", sa.Text(), nullable=False),
        sa.Column("billing_zip", sa.Text(), nullable=False),
        sa.Column("billing_country", sa.Text(), nullable=False),
        sa.Column("billing_email", sa.Text(), nullable=False),
        sa.Column("billing_phone", sa.Text(), nullable=False),
        sa.Column("billing_contact_name", sa.Text(), nullable=False),
        sa.Column("send_invoice_days_before_due", sa.BigInteger(), nullable=False),
        sa.Column("send_email_receipts", sa.Boolean(), nullable=False),
        sa.Column("send_paper_receipts", sa.Boolean(), nullable=False),
        sa.Column("source_timestamp", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("canceled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("cancel_at_period_end", sa.Boolean(), nullable=True),
        sa.Column("cancel_reason", sa.Text(), nullable=True),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_subscriptions_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_subscriptions")),
        sa.UniqueConstraint(
            "tenant_id",
            "bp_subscription_id",
            name=op.f("uq_subscriptions_tenant_id_bp_subscription_id"),
        ),
    )
    op.create_index(
        op.f("ix_subscriptions_bp_customer_id"),
        "subscriptions",
        ["bp_customer_id"],
        postgresql_using="hash",
    )
    op.create_index(
        op.f("ix_subscriptions_bp_subscription_id"), "subscriptions", ["bp_subscription_id"]
    )
    op.create_index(op.f("ix_subscriptions_created_at_id"), "subscriptions", ["created_at", "id"])
    op.create_index(op.f("ix_subscriptions_id"), "subscriptions", ["id"])
    op.create_index(
        op.f("ix_subscriptions_status_class_created_at_id"),
        "subscriptions",
        ["status_class", "created_at", "id"],
    )
    op.create_index(
        op.f("ix_subscriptions_tenant_id_created_at_id"),
        "subscriptions",
        ["tenant_id", "created_at", "id"],
    )
    grant("plan_presets")
    isolate("feature_overrides")
    isolate("subscriptions")


def downgrade():
    op.drop_table("subscriptions")
    op.drop_table("feature_overrides")
    op.drop_table("plan_presets")
