"""A function that locks a tenant and reads the plan of its current subscription."""

from alembic import op

from migrations.replaceable import install

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "lock_tenant_plan")


def downgrade():
    op.execute("DROP FUNCTION lock_tenant_plan(uuid)")
