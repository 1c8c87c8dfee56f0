"""Views of current subscriptions and plans in force; one function that decides a tenant's plan."""

from alembic import op

from migrations.replaceable import install
from migrations.security import grant

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

# No process calls them: of these only follow_plan called one, until now.
UNUSED = (
    "lock_tenant_plan(uuid)",
    "lock_seats(uuid, uuid, uuid)",
    "must_change_one(bigint)",
)


def upgrade():
    install(revision, "current_subscriptions", "plans_in_force", "decide_plans")
    grant("current_subscriptions", "SELECT")
    grant("plans_in_force", "SELECT")
    install(revision, "follow_plan", "tenant_limits", "usage_period")
    for function in UNUSED:
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION {function}")


def downgrade():
    install("0001", "must_change_one")
    install("0006", "lock_tenant_plan")
    install("0015", "lock_seats")
    install("0016", "follow_plan", "tenant_limits", "usage_period")
    op.execute("DROP FUNCTION decide_plans(uuid[], text)")
    op.execute("DROP VIEW plans_in_force")
    op.execute("DROP VIEW current_subscriptions")
