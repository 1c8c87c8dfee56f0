"""What a migration does to a new table beyond creating it: grants and row-level security."""

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
    """The role of DATABASE_URL, quoted: the plain role that requests and workers connect as."""
    name = make_url(current_app.extensions["config"].database_url).username
    return '"' + name.replace('"', '""') + '"'


def grant(table, privileges=ALL):
    """Let the application's role use a table."""
    op.execute(f"GRANT {privileges} ON {table} TO {application_role()}")


def isolate(table, privileges=ALL):
    """Make a table tenant-owned: row-level security, forced on its owner too.

    Rows show by the transaction-local settings ``app.tenant_id`` and ``app.platform``; with
    neither set, none does. The sub-selects make PostgreSQL evaluate the settings once; that the second
    one gives the truth itself lets it expect many rows, and walk an index instead of sorting them all.
    """
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(POLICY.format(table=table))
    grant(table, privileges)
