"""Tenants whose users have five searchable fields each, loaded by COPY."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from psycopg2.extensions import connection, cursor

from benchmarks.dataset import (
    DEPARTMENTS,
    FIELD_COLUMNS,
    START,
    TENANT_COLUMNS,
    USER_COLUMNS,
    copy,
    org_id,
    row_id,
    tenant_row,
)

TENANT, USER, FIELD = 1, 2, 16
FIELDS = {
    "code": "text",  # nearly unique
    "department": "select",  # one of eight
    "level": "integer",  # one of a hundred
    "score": "decimal",
    "hired_on": "date",
}
FIRST_DAY = date(2010, 1, 1)
BATCH = 10  # tenants per COPY
INDEX_COLUMNS = "tenant_id field_id state is_settled done total updated_at"
ROW_COLUMNS = "tenant_id field_id entity_id ordinal text_key number_value date_value"
NULL = "\\N"


def field_id(tenant: int, place: int) -> UUID:
    return row_id(FIELD, tenant * len(FIELDS) + place)


def values(user: int) -> dict[str, Any]:
    """What a user's metadata holds; follows from the user's number."""
    return {
        "code": f"E{user * 7919 % 10_000_000:07}",
        "department": DEPARTMENTS[user % len(DEPARTMENTS)],
        "level": user // 3 % 100,
        "score": user * 37 % 10_000 / 100,
        "hired_on": str(FIRST_DAY + timedelta(days=user * 13 % 5000)),
    }


def load(session: connection, tenants: range, *, users_per_tenant: int, indexed: bool) -> int:
    """Load these tenants; with ``indexed`` their index rows too, else their indexes wait to be built.

    Returns how many users they have.
    """
    for first in range(tenants.start, tenants.stop, BATCH):
        batch = range(first, min(first + BATCH, tenants.stop))
        users = range(batch.start * users_per_tenant, batch.stop * users_per_tenant)
        with session, session.cursor() as database:
            _copy(database, "tenants", TENANT_COLUMNS, map(tenant_row, batch))
            _copy(database, "custom_fields", FIELD_COLUMNS, _fields(batch))
            _copy(database, "custom_field_indexes", INDEX_COLUMNS, _indexes(batch, indexed))
            _copy(database, "users", USER_COLUMNS, _users(users, users_per_tenant))
            if indexed:
                rows = _index_rows(users, users_per_tenant)
                _copy(database, "custom_field_index_rows", ROW_COLUMNS, rows)
    return len(tenants) * users_per_tenant


def analyze(session: connection) -> None:
    """Vacuum and analyze, as autovacuum does after a load of this size."""
    session.autocommit = True
    with session.cursor() as database:
        database.execute("VACUUM (ANALYZE) users, custom_fields, custom_field_index_rows")
    session.autocommit = False


def _fields(tenants: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    for tenant in tenants:
        for place, (key, field_type) in enumerate(FIELDS.items()):
            options = json.dumps(DEPARTMENTS) if field_type == "select" else NULL
            yield (
                *(field_id(tenant, place), START, START, 1, row_id(TENANT, tenant)),
                *(org_id(tenant), "user", key, key, field_type, options),
                *(False, True, True, place),
            )


def _indexes(tenants: Iterable[int], indexed: bool) -> Iterator[tuple[Any, ...]]:
    state = "ready" if indexed else "building"
    for tenant in tenants:
        for place in range(len(FIELDS)):
            yield row_id(TENANT, tenant), field_id(tenant, place), state, indexed, 0, 0, START


def _users(users: Iterable[int], users_per_tenant: int) -> Iterator[tuple[Any, ...]]:
    for user in users:
        tenant = user // users_per_tenant
        yield (
            *(row_id(USER, user), START, START, 1, row_id(TENANT, tenant), org_id(tenant)),
            *("system:idp", "system:idp", f"idp|{user}", f"user{user}@example.com"),
            *(f"First{user}", f"Last{user}", True, json.dumps(values(user))),
        )


def _index_rows(users: Iterable[int], users_per_tenant: int) -> Iterator[tuple[Any, ...]]:
    for user in users:
        tenant = user // users_per_tenant
        ids, entity = row_id(TENANT, tenant), row_id(USER, user)
        value = values(user)
        columns = (
            (value["code"], NULL, NULL),
            (value["department"], NULL, NULL),
            (NULL, value["level"], NULL),
            (NULL, value["score"], NULL),
            (NULL, NULL, f"{value['hired_on']}T00:00:00Z"),
        )
        for place, column in enumerate(columns):
            yield (ids, field_id(tenant, place), entity, 0, *column)


def _copy(database: cursor, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """COPY in its text format; no value here contains a character that needs escaping."""
    text = io.StringIO()
    for row in rows:
        text.write("\t".join(map(str, row)) + "\n")
    text.seek(0)
    copy(database, f"COPY {table} ({', '.join(columns.split())}) FROM STDIN", text)
