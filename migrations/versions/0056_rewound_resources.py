"""Rewinds also reach resources, whose ids are no UUIDs."""

from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

SET_TYPE = "-- squawk-ignore changing-column-type\nALTER TABLE rewinds ALTER COLUMN last_id TYPE {}"


def upgrade():
    op.execute(SET_TYPE.format("text"))


def downgrade():
    found = "CASE WHEN pg_input_is_valid(last_id, 'uuid') THEN last_id::uuid END"  # else a position
    op.execute(SET_TYPE.format(f"uuid USING {found}"))
