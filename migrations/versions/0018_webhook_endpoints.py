"""Webhook endpoints and their deliveries, and the last position that has deliveries."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import grant, isolate

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "webhook_endpoints",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("old_secret_until", MOMENT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("rate_limit", sa.BigInteger(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("types", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("header_names", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("signing", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_endpoints")),
    )
    op.create_index(op.f("ix_webhook_endpoints_id"), "webhook_endpoints", ["id"])
    op.create_index(
        op.f("ix_webhook_endpoints_created_at_id"), "webhook_endpoints", ["created_at", "id"]
    )
    op.create_index(
        op.f("ix_webhook_endpoints_updated_at"),
        "webhook_endpoints",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    op.create_table(
        "webhook_endpoint_states",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("failing_since", MOMENT, nullable=True),
        sa.Column("window_start", MOMENT, nullable=True),
        sa.Column("window_count", sa.BigInteger(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("old_secret", sa.Text(), nullable=True),
        sa.Column("headers", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "endpoint_id"],
            ["webhook_endpoints.tenant_id", "webhook_endpoints.id"],
            name=op.f("fk_webhook_endpoint_states_tenant_id_endpoint_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "endpoint_id", name=op.f("pk_webhook_endpoint_states")
        ),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("attempted_at", MOMENT, nullable=True),
        sa.Column("next_attempt_at", MOMENT, nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.SmallInteger(), nullable=False),
        sa.Column("response_code", sa.SmallInteger(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("response_body", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index(op.f("ix_webhook_deliveries_id"), "webhook_deliveries", ["id"])
    op.create_index(
        op.f("ix_webhook_deliveries_tenant_id_endpoint_id_event_id"),
        "webhook_deliveries",
        ["tenant_id", "endpoint_id", "event_id"],
        unique=True,
    )
    op.create_index(
        op.f("ix_webhook_deliveries_tenant_id_endpoint_id_created_at_id"),
        "webhook_deliveries",
        ["tenant_id", "endpoint_id", "created_at", "id"],
    )
    op.create_index(
        op.f("ix_webhook_deliveries_created_at"),
        "webhook_deliveries",
        ["created_at"],
        postgresql_using="brin",
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["tenant_id", "endpoint_id", "next_attempt_at"],
        postgresql_where=sa.text("next_attempt_at IS NOT NULL"),
    )
    op.create_index(
        "ix_webhook_deliveries_sending",
        "webhook_deliveries",
        ["tenant_id", "endpoint_id"],
        postgresql_where=sa.text("status = 'sending'"),
    )
    op.create_table(
        "webhook_feed",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_feed")),
    )
    isolate("webhook_endpoints")
    isolate("webhook_endpoint_states")
    isolate("webhook_deliveries")
    grant("webhook_feed", "SELECT, INSERT, UPDATE")
    install(revision, "webhook_endpoint_gets", "queued_webhook_endpoints")


def downgrade():
    op.execute("DROP FUNCTION queued_webhook_endpoints()")
    op.execute("DROP FUNCTION webhook_endpoint_gets(uuid, text[], uuid, text)")
    op.drop_table("webhook_feed")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhook_endpoint_states")
    op.drop_table("webhook_endpoints")
