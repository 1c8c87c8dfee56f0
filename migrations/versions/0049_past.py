"""The schema `past`: views with the names of tables, which show the rows of an earlier moment."""

from alembic import op

from migrations.replaceable import install

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

TABLES = {
    "tenants": "tenant",
    "users": "user",
    "memberships": "membership",
    "subscriptions": "subscription",
    "custom_fields": "custom_field",
    "feature_overrides": "override",
}
# These say something about a row, and do not change it.
UNCHANGED = (
    *("tenant.notes_changed", "tenant.over_seats", "tenant.ownerless"),
    *("tenant.plan_assigned", "tenant.plan_withdrawn", "trial.ended", "trial.ending"),
    *("subscription.plan_unknown", "user.erasure_requested", "user.exported"),
)
LISTED = ", ".join(f"''{action}''" for action in UNCHANGED)
CHANGES = f"a.action NOT IN ({LISTED})"


def upgrade():
    op.execute("CREATE SCHEMA past")
    op.execute("GRANT USAGE ON SCHEMA past TO PUBLIC")
    install(revision, "past.last_position", "past.now", "past.trail")
    install(revision, "past.platform_trail", "past.define")
    for table, kind in TABLES.items():
        op.execute(f"SELECT past.define('{table}', '{kind}', '{CHANGES}')")
    op.execute("SELECT past.define('plan_presets', 'plan_preset', 'true', 'past.platform_trail()')")
    install(revision, "past.plans_in_force")
    op.execute("GRANT SELECT ON past.trail, past.plans_in_force TO PUBLIC")


def downgrade():
    op.execute("DROP SCHEMA past CASCADE")
