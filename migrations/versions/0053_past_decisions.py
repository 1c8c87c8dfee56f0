"""Decisions about access in the past read the assignments and resources of a tenant once."""

from alembic import op

from migrations.replaceable import install

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "assignments_of_tenant", "past.assignments_of_tenant")
    install(revision, "resources_of_tenant", "past.resources_of_tenant")
    install(revision, "access_facts")


def downgrade():
    install("0047", "access_facts")
    for kind in ("assignments", "resources"):
        op.execute(f"DROP FUNCTION {kind}_of_tenant(uuid)")
        op.execute(f"DROP FUNCTION past.{kind}_of_tenant(uuid)")
