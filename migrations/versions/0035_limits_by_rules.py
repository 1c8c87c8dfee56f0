"""Limits that rules give, and what rules compare of a tenant."""

from alembic import op

from migrations.replaceable import install
from migrations.security import grant

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade():
    install(revision, "condition_holds", "plans_in_force", "tenant_limits")


def downgrade():
    install("0027", "tenant_limits")
    op.execute("DROP VIEW plans_in_force")  # a replaced view keeps its columns
    install("0027", "plans_in_force")
    grant("plans_in_force", "SELECT")
    op.execute("DROP FUNCTION condition_holds(jsonb, jsonb)")
