"""Tell the planner that ``authenticate_key`` returns one row; its default estimate is 1,000 rows."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade():
    op.execute("ALTER FUNCTION authenticate_key(text) ROWS 1")


def downgrade():
    op.execute("ALTER FUNCTION authenticate_key(text) ROWS 1000")
