"""A function that locks a tenant and reads the plan of its current subscription."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Each statement in the function has its own snapshot, so the second one sees what the last holder of
# the tenant's lock committed.
LOCK_TENANT_PLAN = """
CREATE FUNCTION lock_tenant_plan(
    wanted_tenant_id uuid,
    OUT id uuid,
    OUT plan_name text,
    OUT version bigint,
    OUT current_plan_name text
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.id, t.plan_name, t.version INTO id, plan_name, version
        FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    SELECT s.plan_name INTO current_plan_name
        FROM subscriptions s
        WHERE s.tenant_id = wanted_tenant_id AND s.status_class <> 'ended'
        ORDER BY s.start_date DESC, s.id DESC
        LIMIT 1;
END
$$
"""


def upgrade():
    op.execute(LOCK_TENANT_PLAN)


def downgrade():
    op.execute("DROP FUNCTION lock_tenant_plan(uuid)")
