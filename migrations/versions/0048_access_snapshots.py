"""What a snapshot of a tenant's decisions about access has."""

from alembic import op

from migrations.replaceable import install

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "access_version", "snapshot_basics", "snapshot_rows")


def downgrade():
    op.execute("DROP FUNCTION access_version(uuid, text[])")
    op.execute("DROP FUNCTION snapshot_basics(uuid, text[])")
    op.execute("DROP FUNCTION snapshot_rows(uuid, text[], text[], bigint)")
