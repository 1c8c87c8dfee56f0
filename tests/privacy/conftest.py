"""What the privacy tests share."""

from collections.abc import Callable
from typing import Any

import pytest
from psycopg2.extensions import cursor

TEXTLESS = (
    "uuid", "boolean", "smallint", "integer", "bigint", "numeric", "double precision",
    "timestamp with time zone",
)  # fmt: skip
COLUMNS = """
    SELECT quote_ident(table_name), quote_ident(column_name), data_type
    FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type <> ALL (%s)
"""


@pytest.fixture
def dump(superuser: cursor) -> Callable[[], str]:
    """Call it for every row of every table as text."""

    def read() -> str:
        superuser.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        lines = []
        for (table,) in superuser.fetchall():
            superuser.execute(f'SELECT * FROM "{table}"')
            lines += [f"{table} {_text(row)}" for row in superuser.fetchall()]
        return "\n".join(lines)

    return read


@pytest.fixture
def columns_without(superuser: cursor) -> Callable[[str], dict[str, set[str]]]:
    """Call it for the columns by table that can hold a text, but hold it in no row."""

    def read(text: str) -> dict[str, set[str]]:
        superuser.execute(COLUMNS, [list(TEXTLESS)])
        found: dict[str, set[str]] = {}
        for table, column, data_type in superuser.fetchall():
            value = f"encode({column}, 'escape')" if data_type == "bytea" else f"{column}::text"
            superuser.execute(f"SELECT FROM {table} WHERE {value} ILIKE %s LIMIT 1", [f"%{text}%"])
            if superuser.rowcount == 0:
                found.setdefault(table, set()).add(column)
        return found

    return read


def _text(row: tuple[Any, ...]) -> str:
    return " | ".join(
        bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else str(value)
        for value in row
    )
