"""Thresholds of seats, and indexes of what ends: overrides, and periods of usage."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Lock the tenant if its plan limits the seats, and return the limit as JSON, with the seats that
# are used and the highest threshold that was recorded: for `new_member_id`, a user who becomes a
# member, or `activated_id`, a user who becomes active, or for anybody. NULL without a limit, and
# where the user does not take a seat. Each query sees what the last holder of the lock committed.
# It replaces lock_seats, which stays for the processes of the last release.
LOCK_SEAT_LIMIT = """
CREATE OR REPLACE FUNCTION lock_seat_limit(wanted_tenant_id uuid, new_member_id uuid, activated_id uuid)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    granted record;
BEGIN
    SELECT l.most, l.policy, l.warn_at INTO granted FROM tenant_limits(wanted_tenant_id, 'seats') l
        WHERE l.most > -1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM tenants t WHERE t.id = wanted_tenant_id FOR NO KEY UPDATE;
    PERFORM FROM users u
        WHERE u.tenant_id = wanted_tenant_id AND u.id = new_member_id AND NOT u.is_active;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM FROM memberships m
        WHERE m.tenant_id = wanted_tenant_id AND m.user_id = activated_id AND m.is_active;
    IF activated_id IS NOT NULL AND NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN json_build_object(
        'most', granted.most, 'policy', granted.policy, 'warn_at', granted.warn_at,
        'used', count_seats(wanted_tenant_id),
        'announced', coalesce((
            SELECT c.announced FROM usage_counters c
            WHERE c.tenant_id = wanted_tenant_id AND c.feature = 'seats'
                AND c.period_start = 'epoch'
        ), 0)
    );
END
$$
"""


def upgrade():
    op.execute(LOCK_SEAT_LIMIT)
    op.add_column(
        "feature_overrides",
        sa.Column("announced_expiry", postgresql.TIMESTAMP(timezone=True), nullable=True),
        if_not_exists=True,
    )
    op.execute("SET LOCAL app.platform = 'on'")  # row-level security also applies to the owner
    op.execute(
        "UPDATE feature_overrides SET announced_expiry = expires_at WHERE expires_at <= now()"
    )
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_feature_overrides_expires_at")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_feature_overrides_expires_at"
            " ON feature_overrides (expires_at)"
            " WHERE expires_at IS DISTINCT FROM announced_expiry"
        )
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_usage_counters_period_end")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_usage_counters_period_end"
            " ON usage_counters (period_end) WHERE period_end IS NOT NULL"
        )


def downgrade():
    op.execute("DROP INDEX ix_usage_counters_period_end")
    op.drop_column("feature_overrides", "announced_expiry")
    op.execute("DROP FUNCTION lock_seat_limit(uuid, uuid, uuid)")
