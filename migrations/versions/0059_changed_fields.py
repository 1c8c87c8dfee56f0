"""What an audit row only says about a row is not among the fields that have changed."""

from alembic import op

from migrations.replaceable import install

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "past.is_change", "past.changes")


def downgrade():
    install("0052", "past.changes")
    op.execute("DROP FUNCTION past.is_change(text)")
