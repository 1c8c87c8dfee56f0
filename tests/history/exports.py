"""What ``flask export`` and ``flask tenants export`` write of a tenant, now or as of a position."""

import json
from types import SimpleNamespace
from uuid import UUID

from app.core.db.queries import get_row
from app.core.json_text import dumps_text
from app.history import past
from app.history.completeness import NOT_RECORDED
from app.imports.export import lines_of
from app.privacy.database import snapshot
from app.privacy.export_rows import as_json
from app.privacy.tenants import tenant_export
from app.rewinds.kinds import KINDS
from app.tenants.models import Tenant
from tests import database

LINES = "lines"
# Those that past.define has made. In the others are members of groups, and what is not recorded.
FIND_VIEWS = """
    SELECT viewname FROM pg_views WHERE schemaname = 'past'
    AND definition LIKE '%json_populate_record%' ORDER BY viewname
"""


def tables_with_past():
    return [row.viewname for row in database.query(FIND_VIEWS)]


def read(tenant_id, as_of=None):
    """The rows by table, of tables that have a past, and the lines for an import; all as texts."""
    tables = tables_with_past()
    with database.platform_transaction():
        if as_of is not None:
            moment = past.find(as_of, past.LOCATION)._asdict()
            past.enter(as_of, UUID(tenant_id), "export")
        lines = [_text(line) for line in lines_of(get_row(Tenant, tenant_id))]
        with snapshot() as connection:
            if as_of is not None:
                place = {name: str(value) for name, value in moment.items()}
                connection.execute(past.ENTER.clause, {**place, "tenant_id": tenant_id})
            found = tenant_export.of_tenant(connection, UUID(tenant_id), lambda *_: None)
            rows = {
                table: [_text(as_json(row)) for row in found[table]()]
                for table in tables
                if table in found
            }
    return {LINES: lines, **rows}


def read_all(position, *, with_bases=True):
    """The rows of all tenants by table, as of a position; also from the trail alone."""
    settings = {
        "app.as_of_position": position,
        "app.as_of_base": position if with_bases else -1,
    }
    read = "SELECT to_json(p)::text FROM past.{} p ORDER BY id"
    tables = tables_with_past()
    with database.platform_transaction():
        run = database.Statement
        for name, value in settings.items():
            run("tests.set", "SELECT set_config(:name, :value, true)", prepare=False).execute(
                name=name, value=str(value)
            )
        return {
            table: run("tests.past", read.format(table), prepare=False).scalars()
            for table in tables
        }


def by_id(kind, tables):
    """The rows of a kind of rewinds by the ids that the audit trail has of them."""
    how = KINDS[kind]
    rows = map(json.loads, tables[how.model.__tablename__])
    return {how.id_of(SimpleNamespace(**row)): row for row in rows}


def _text(values):
    return dumps_text({name: one for name, one in values.items() if name not in NOT_RECORDED})
