"""Grants and row-level security for a migration's new tables."""

from alembic import op
from flask import current_app
from sqlalchemy.engine import make_url

ALL = "SELECT, INSERT, UPDATE, DELETE"
APPEND_ONLY = "SELECT, INSERT"

POLICY = """
CREATE POLICY tenant_isolation ON {table}
USING (
    tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)
    OR (SELECT current_setting('app.platform', true) = 'on')
)
"""


def application_role():
    """The role of DATABASE_URL, quoted: the plain role of all processes except migrations."""
    name = make_url(current_app.extensions["config"].database_url).username
    return '"' + name.replace('"', '""') + '"'


def grant(table, privileges=ALL):
    """Give the application's role the ``privileges`` on a table."""
    op.execute(f"GRANT {privileges} ON {table} TO {application_role()}")


def isolate(table, privileges=ALL):
    """Make a table tenant-owned: row-level security, which also applies to its owner.

    The transaction-local settings ``app.tenant_id`` and ``app.platform`` decide which rows are
    visible. Without them no row is. The sub-selects make PostgreSQL evaluate each setting once.
    The second sub-select returns a boolean, so the planner expects many rows. It then reads them in
    an index's order instead of sorting them.
    """
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(POLICY.format(table=table))
    grant(table, privileges)


def grant_function(signature):
    """Let only the application's role, and the owner, call a function that runs as its owner."""
    op.execute(f"REVOKE EXECUTE ON FUNCTION {signature} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {application_role()}")
