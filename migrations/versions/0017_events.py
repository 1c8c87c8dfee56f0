"""Events: the outbox that changes write, the events in their order, and the last position."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.replaceable import install
from migrations.security import grant, grant_function, isolate

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def columns():
    return (
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("is_platform_actor", sa.Boolean(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=True),
    )


def upgrade():
    op.create_table(
        "event_outbox",
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        *columns(),
        sa.PrimaryKeyConstraint("tenant_id", "number", name=op.f("pk_event_outbox")),
    )
    op.create_index(op.f("ix_event_outbox_number"), "event_outbox", ["number"])
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger(), nullable=False),
        *columns(),
        sa.PrimaryKeyConstraint("tenant_id", "position", name=op.f("pk_events")),
    )
    for names in (["position"], ["id"], ["type", "position"], ["tenant_id", "type", "position"]):
        op.create_index(op.f(f"ix_events_{'_'.join(names)}"), "events", names)
    op.create_table(
        "event_feed",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("last_position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("removed_position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "cursor_key",
            sa.LargeBinary(),
            server_default=sa.text(
                "decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')"
            ),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_feed")),
    )
    op.execute("INSERT INTO event_feed (id) VALUES (1)")
    isolate("event_outbox", "SELECT, INSERT, DELETE")
    isolate("events", "SELECT, INSERT, DELETE")
    grant("event_feed", "SELECT, INSERT, UPDATE")
    install(revision, "redact_event")
    grant_function("redact_event(uuid, uuid, json)")


def downgrade():
    op.execute("DROP FUNCTION redact_event(uuid, uuid, json)")
    op.drop_table("event_feed")
    op.drop_table("events")
    op.drop_table("event_outbox")
