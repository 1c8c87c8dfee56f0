"""Log streams, and how far each has come."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.security import isolate

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

MOMENT = postgresql.TIMESTAMP(timezone=True)


def upgrade():
    op.create_table(
        "log_streams",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by_user_id", sa.Text(), nullable=False),
        sa.Column("updated_by_user_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("types", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_log_streams")),
    )
    for columns in (["id"], ["created_at", "id"]):
        op.create_index(op.f(f"ix_log_streams_{'_'.join(columns)}"), "log_streams", columns)
    op.create_index(
        op.f("ix_log_streams_updated_at"),
        "log_streams",
        ["updated_at"],
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    op.create_table(
        "log_stream_progress",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("claim", sa.Uuid(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("batch_end", sa.BigInteger(), nullable=True),
        sa.Column("next_attempt_at", MOMENT, nullable=True),
        sa.Column("written_at", MOMENT, nullable=True),
        sa.Column("written_until", MOMENT, nullable=False),
        sa.Column("warned_at", MOMENT, nullable=True),
        sa.Column("tested_at", MOMENT, nullable=True),
        sa.Column("failures", sa.SmallInteger(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("batch_name", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_object", sa.Text(), nullable=True),
        sa.Column("last_position", sa.Text(), nullable=True),
        sa.Column("test_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "stream_id"],
            ["log_streams.tenant_id", "log_streams.id"],
            name=op.f("fk_log_stream_progress_tenant_id_stream_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "stream_id", name=op.f("pk_log_stream_progress")),
    )
    for column in ("stream_id", "position"):
        op.create_index(op.f(f"ix_log_stream_progress_{column}"), "log_stream_progress", [column])
    op.create_index(
        "ix_log_stream_progress_due",
        "log_stream_progress",
        ["next_attempt_at"],
        postgresql_where=sa.text("next_attempt_at IS NOT NULL"),
    )
    for table in ("log_streams", "log_stream_progress"):
        isolate(table)
    op.execute("SELECT set_config('app.platform', 'on', true)")
    op.execute(
        'UPDATE roles SET permissions = ARRAY(SELECT each COLLATE "C" FROM unnest(permissions'
        " || ARRAY['log_streams:read', 'log_streams:write']) each ORDER BY 1)"
        " WHERE tenant_id IS NULL AND key IN ('owner', 'admin')"
    )


def downgrade():
    op.drop_table("log_stream_progress")
    op.drop_table("log_streams")
