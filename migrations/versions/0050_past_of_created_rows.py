"""The past has no row without its creation, and audit rows that change nothing do not count."""

from alembic import op

from migrations.replaceable import install

revision = "0050"
down_revision = "0049"
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
EARLIER = (
    "a.action NOT IN (''tenant.plan_assigned'', ''tenant.plan_withdrawn'')"
    " AND a.action NOT LIKE ''trial.%''"
)
# These say something about a row, and do not change it.
UNCHANGED = (
    *("tenant.notes_changed", "tenant.over_seats", "tenant.ownerless"),
    *("tenant.plan_assigned", "tenant.plan_withdrawn", "trial.ended", "trial.ending"),
    *("subscription.plan_unknown", "user.erasure_requested", "user.exported"),
)
LISTED = ", ".join(f"''{action}''" for action in UNCHANGED)
CHANGES = f"a.action NOT IN ({LISTED})"


def upgrade():
    install(revision, "past.define")
    define(CHANGES)


def downgrade():
    install("0049", "past.define")
    define(EARLIER)


def define(changes):
    """Make the views again. Those that use them are dropped with them."""
    for table, kind in TABLES.items():
        op.execute(f"SELECT past.define('{table}', '{kind}', '{changes}')")
    op.execute("SELECT past.define('plan_presets', 'plan_preset', 'true', 'past.platform_trail()')")
    install("0049", "past.plans_in_force")
    op.execute("GRANT SELECT ON past.plans_in_force TO PUBLIC")
