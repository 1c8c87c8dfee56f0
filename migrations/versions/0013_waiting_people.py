"""Mark the people of whom no membership is known as waiting, and index what waits by its age."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# The same as `Objects.mark_waiting`: a deleted membership connects a person too.
MARK_PEOPLE = """
UPDATE identity_objects AS person SET is_waiting = true
WHERE person.kind = 'user' AND NOT person.is_deleted AND person.state ->> 'exists' = 'true'
    AND NOT EXISTS (
        SELECT FROM identity_objects AS membership
        WHERE membership.source = person.source AND membership.user_id = person.object_id
    )
"""


def upgrade():
    op.execute(MARK_PEOPLE)
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_identity_objects_waiting_since")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_identity_objects_waiting_since"
            " ON identity_objects (created_at) WHERE is_waiting"
        )


def downgrade():
    op.execute("DROP INDEX ix_identity_objects_waiting_since")
    op.execute("UPDATE identity_objects SET is_waiting = false WHERE kind = 'user' AND is_waiting")
