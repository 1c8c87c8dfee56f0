"""An index for the platform's list of all webhook endpoints."""

from alembic import op

revision = "0023"
down_revision = "0020"
branch_labels = None
depends_on = None

NAME, TABLE = "ix_webhook_endpoints_created_at_id", "webhook_endpoints"


def upgrade():
    with op.get_context().autocommit_block():
        # A build that failed leaves an invalid index.
        op.drop_index(NAME, TABLE, postgresql_concurrently=True, if_exists=True)
        op.create_index(
            NAME, TABLE, ["created_at", "id"], postgresql_concurrently=True, if_not_exists=True
        )


def downgrade():
    with op.get_context().autocommit_block():
        op.drop_index(NAME, TABLE, postgresql_concurrently=True, if_exists=True)
