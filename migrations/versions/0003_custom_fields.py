"""Custom fields and their search index."""

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade():
    pass


def downgrade():
    pass
