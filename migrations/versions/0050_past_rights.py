"""The past of roles, and of what decides about access."""

from importlib import import_module

from alembic import op

from migrations.replaceable import install

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None

PAST = import_module("migrations.versions.0049_past")
TABLES = {
    **PAST.TABLES,
    "api_keys": "api_key",
    "domains": "domain",
    "invitations": "invitation",
    "join_requests": "join_request",
    "role_assignments": "role_assignment",
}
PLATFORM = {"plan_presets": "plan_preset", "product_permissions": "permission"}
# Nothing is recorded of these. So in the past nothing is used, held or granted beyond the plan.
COUNTS = ("usage_counters", "usage_holds", "credit_lots", "credit_holds")


def upgrade():
    for function in ("past.define(text, text, text, text)", "past.platform_trail() CASCADE"):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION {function}")
    install(revision, "past.trail", "past.platform_trail", "past.define", "past.role_trail")
    install(revision, "past.scim_members", "past.platform_admins")
    for table, kind in TABLES.items():
        op.execute(f"SELECT past.define('{table}', '{kind}', '{PAST.CHANGES}')")
    for table, kind in PLATFORM.items():
        trail = f"past.platform_trail(''{kind}'')"
        op.execute(f"SELECT past.define('{table}', '{kind}', 'true', '{trail}')")
    op.execute("SELECT past.define('roles', 'role', 'true', 'past.role_trail')")
    resources = "'true', 'past.trail', 'target_id'"
    op.execute(f"SELECT past.define('access_resources', 'resource', {resources})")
    for table in COUNTS:
        empty = f"SELECT * FROM public.{table} WHERE false"  # noqa: S608 - no input
        op.execute(f"CREATE VIEW past.{table} AS {empty}")
    install(revision, "past.plans_in_force")  # which depends on past.tenants
    op.execute("GRANT SELECT ON ALL TABLES IN SCHEMA past TO PUBLIC")


def downgrade():
    op.execute("DROP SCHEMA past CASCADE")
    PAST.upgrade()
