"""Rewinds find changed resources, and what they were, by their names, however many others there are."""

from alembic import op

from migrations.replaceable import install

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "past.resources_named", "past.changed_resources")


def downgrade():
    op.execute("DROP FUNCTION past.resources_named(uuid, text[])")
    op.execute(
        "DROP FUNCTION past.changed_resources(uuid, bigint, timestamptz, bigint, bigint, integer)"
    )
