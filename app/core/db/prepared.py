"""Prepared statements: a statement that a connection runs often is prepared there.

PostgreSQL then parses it once, and after some executions it usually keeps one plan. This saves a
third to a half of PostgreSQL's work, and the service answers a third more requests per second. The
rules are psycopg 3's: a statement is prepared at use number :data:`THRESHOLD`. A connection has at
most :data:`MAX_PREPARED`; for a further one it deallocates the least recently used.

Behind a transaction pooler such as PgBouncer each transaction may meet another server process, so
nothing is prepared there. Each transaction asks for the server's process id, in the statement that
authenticates or sets the scope, and ``note_server`` compares it with the connection's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from psycopg2.extensions import AsIs, connection, cursor

if TYPE_CHECKING:
    from app.core.db.statements import Statement

THRESHOLD = 5  # uses on one connection
DEFERRAL = 1000  # further uses before the next attempt, after a message that prepares has failed
MAX_PREPARED = 200  # statements per connection; PostgreSQL keeps about 10 KB for each
MAX_COUNTED = 1000
NAME_LENGTH = 50  # PostgreSQL cuts names after 63 bytes, and the number must stay
PREPARED = "prepared_statements"  # the key in ``info`` of the pool's connection


class PreparedStatements:
    """The prepared statements of one connection, the least recently used first."""

    def __init__(self) -> None:
        self.is_direct = False
        self._names: OrderedDict[Statement, str] = OrderedDict()
        self._uses: dict[Statement, int] = {}
        self._numbers = count(1)

    def note_server(self, process_id: int, connection: connection) -> None:
        """Set ``is_direct``: whether this is the server process that the connection began with."""
        self.is_direct = process_id == connection.get_backend_pid()

    def message(
        self, cursor: cursor, statement: Statement, values: Mapping[str, object]
    ) -> tuple[str, list[object] | None] | None:
        """The SQL and the values that run ``statement``; None where it is sent in full.

        SQL that prepares the statement already contains the values, which are None.
        """
        if not self.is_direct or len(values) != len(statement.required):
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

    def note_failure(self, statement: Statement) -> None:
        """Send ``statement`` in full again, because the message that prepares it has failed.

        PostgreSQL may have prepared it all the same. So the next attempt has another name, and
        comes late enough that such statements do not add up.
        """
        self._names.pop(statement, None)
        self._uses[statement] = -DEFERRAL

    def _prepare(self, cursor: cursor, statement: Statement, arguments: list[object]) -> str:
        """One message that prepares the statement and executes it."""
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
