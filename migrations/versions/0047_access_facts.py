"""What decides whether somebody has a permission."""

from alembic import op

from migrations.replaceable import install
from migrations.security import grant

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "access_grants", "granting_roles", "resource_chain", "access_facts")
    grant("access_grants", "SELECT")
    install(revision, "find_permitted_members", "find_permitted_resources", "find_held_permissions")
    install(revision, "access_candidates")


def downgrade():
    op.execute("DROP FUNCTION access_candidates")
    op.execute("DROP FUNCTION find_held_permissions")
    op.execute("DROP FUNCTION find_permitted_resources")
    op.execute("DROP FUNCTION find_permitted_members")
    op.execute("DROP FUNCTION access_facts")
    op.execute("DROP FUNCTION resource_chain")
    op.execute("DROP FUNCTION granting_roles")
    op.execute("DROP VIEW access_grants")
