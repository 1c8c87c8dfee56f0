"""The webhook inbox, the identity provider's objects, e-mail events and suppressions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import APPEND_ONLY, grant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "email_events",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("webhook_event_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("occurred_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_email_events")),
        sa.UniqueConstraint(
            "webhook_event_id", "ordinal", name=op.f("uq_email_events_webhook_event_id_ordinal")
        ),
    )
    op.create_index(
        op.f("ix_email_events_address_created_at_id"),
        "email_events",
        ["address", "created_at", "id"],
    )
    op.create_index(op.f("ix_email_events_created_at_id"), "email_events", ["created_at", "id"])
    op.create_index(
        "ix_email_events_message_id", "email_events", [sa.literal_column("left(message_id, 255)")]
    )
    op.create_table(
        "email_messages",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("state_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("opens", sa.BigInteger(), nullable=False),
        sa.Column("clicks", sa.BigInteger(), nullable=False),
        sa.Column("first_opened_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("first_clicked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_email_messages")),
        sa.UniqueConstraint(
            "source",
            "message_id",
            "address",
            name=op.f("uq_email_messages_source_message_id_address"),
        ),
    )
    op.create_index(op.f("ix_email_messages_address"), "email_messages", ["address"])
    op.create_index(op.f("ix_email_messages_created_at_id"), "email_messages", ["created_at", "id"])
    op.create_index(op.f("ix_email_messages_message_id"), "email_messages", ["message_id"])
    op.create_table(
        "identity_objects",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("organization_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("is_waiting", sa.Boolean(), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("source", "kind", "object_id", name=op.f("pk_identity_objects")),
    )
    op.create_index(
        op.f("ix_identity_objects_source_organization_id"),
        "identity_objects",
        ["source", "organization_id"],
        postgresql_where=sa.text("organization_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_identity_objects_source_user_id"),
        "identity_objects",
        ["source", "user_id"],
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_index(
        "ix_identity_objects_waiting",
        "identity_objects",
        ["updated_at"],
        postgresql_where=sa.text("is_waiting"),
    )
    op.create_table(
        "suppressions",
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("suppressed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("lifted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suppressions")),
        sa.UniqueConstraint(
            "address", "cause", "scope", name=op.f("uq_suppressions_address_cause_scope")
        ),
    )
    op.create_index(
        op.f("ix_suppressions_created_at_id"),
        "suppressions",
        ["created_at", "id"],
        postgresql_where=sa.text("is_active"),
    )
    op.create_table(
        "webhook_events",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("replay_key", sa.Text(), nullable=True),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("replays", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("processed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_events")),
        sa.UniqueConstraint(
            "source", "external_id", name=op.f("uq_webhook_events_source_external_id")
        ),
    )
    op.create_index(op.f("ix_webhook_events_created_at_id"), "webhook_events", ["created_at", "id"])
    op.create_index(
        "ix_webhook_events_failed",
        "webhook_events",
        ["created_at", "id"],
        postgresql_where=sa.text("status = 'failed'"),
    )
    op.create_index(
        "ix_webhook_events_kept_bodies",
        "webhook_events",
        ["processed_at"],
        postgresql_where=sa.text("body IS NOT NULL AND status IN ('succeeded', 'ignored')"),
    )
    op.create_index(
        "ix_webhook_events_pending",
        "webhook_events",
        ["next_attempt_at"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "uq_webhook_events_source_replay_key",
        "webhook_events",
        ["source", "replay_key"],
        unique=True,
        postgresql_where=sa.text("replay_key IS NOT NULL"),
    )
    for table in ("webhook_events", "identity_objects", "email_messages", "suppressions"):
        grant(table)
    grant("email_events", APPEND_ONLY)


def downgrade():
    op.drop_table("webhook_events")
    op.drop_table("suppressions")
    op.drop_table("identity_objects")
    op.drop_table("email_messages")
    op.drop_table("email_events")
