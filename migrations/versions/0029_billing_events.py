"""Indexes of the inbox: pending events of one source, and billing events that wait for a tenant."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_webhook_events_pending_of_source": "webhook_events (source, next_attempt_at)"
    " WHERE status = 'pending'",
    "ix_webhook_events_waiting_tenant": "webhook_events (source, created_at)"
    " WHERE status = 'waiting_tenant'",
}


def upgrade():
    with op.get_context().autocommit_block():
        for name, definition in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")


def downgrade():
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
