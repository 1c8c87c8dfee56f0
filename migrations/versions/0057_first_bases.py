"""Tenants that are older than the order of the audit trail get a base at the end of their old rows."""

from alembic import op

from migrations.replaceable import install

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "past.add_base")
    op.execute("UPDATE event_feed SET based_position = 0")  # the job looks at all tenants once


def downgrade():
    install("0052", "past.add_base")
