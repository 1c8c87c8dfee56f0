"""psycopg2 with one message less per transaction: BEGIN travels with the first statement.

Stock psycopg2 sends BEGIN as a message of its own and waits for its answer. Here the connection is
in psycopg2's autocommit mode and writes ``BEGIN;`` before the first statement of a transaction, in
the same message (the simple query protocol runs them in order); COMMIT and ROLLBACK are sent only
where something was begun. For SQLAlchemy nothing differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psycopg2.extensions import connection, cursor


class Connection(connection):
    """Give it to SQLAlchemy as ``connect_args={"connection_factory": Connection}``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.autocommit = True
        self.cursor_factory = Cursor
        self.begun = False

    def commit(self) -> None:
        """End the transaction, if one was begun."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Give the transaction up, if one was begun."""
        self._end("ROLLBACK")

    def _end(self, command: str) -> None:
        if self.begun:
            self.begun = False
            with self.cursor(cursor_factory=cursor) as plain:
                plain.execute(command)


class Cursor(cursor):
    """Begins its connection's transaction with the first statement."""

    connection: Connection

    def execute(self, query: Any, vars: Any = None) -> None:
        """Run ``query``, after ``BEGIN`` where this is the transaction's first statement."""
        if not self.connection.begun:
            self.connection.begun = True
            query = f"BEGIN;{query}"
        super().execute(query, vars)

    def executemany(self, query: Any, vars_list: Iterable[Any]) -> None:
        """Run ``query`` for each of ``vars_list``, inside the transaction."""
        if not self.connection.begun:
            self.execute("SELECT 1")
        super().executemany(query, vars_list)
