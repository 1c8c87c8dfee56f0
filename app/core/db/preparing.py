"""Which statements one connection has prepared, as far as this process can know.

A statement that is asked for again and again is prepared, as psycopg 3 does: PostgreSQL then neither
reads its text nor, as a rule, plans it any more, which spares it a third of its work for a request.
"""

from __future__ import annotations

from psycopg2.errors import (
    DuplicatePreparedStatement,
    FeatureNotSupported,
    InvalidSqlStatementName,
)

PREPARED_AT = 5  # uses of a statement on one connection, from which on it is prepared there
MOST_PREPARED = 200  # statements of one connection; PostgreSQL keeps 10 KB for each, and more
MOST_PASSING = 100  # of them, that requests choose from very many; the rest keeps its room
MOST_COUNTED = 1000
# The server does not know what was prepared, or a table's columns have other types since.
FORGOTTEN = (InvalidSqlStatementName, DuplicatePreparedStatement, FeatureNotSupported)

_faults = 0  # how often a server refused what was prepared


class Prepared:
    """The names of statements; one is given to the server once, by the message it travels with."""

    def __init__(self) -> None:
        self._faults = _faults
        self._uses: dict[str, int] = {}
        self._known: set[str] = set()
        self._travelling: set[str] = set()
        self._given: set[str] = set()  # the server may know these
        self._passing: set[str] = set()  # those of them that are chosen from very many

    def __contains__(self, name: str) -> bool:
        """Whether the server knows ``name``; nothing, once a server has refused what it should know."""
        return name in self._known and self._faults == _faults

    def is_due(self, name: str, *, passing: bool) -> bool:
        """Count one more use, and tell whether ``name`` is to be prepared now."""
        if len(self._uses) > MOST_COUNTED:
            self._uses.clear()
        uses = self._uses[name] = self._uses.get(name, 0) + 1
        has_room = len(self._given) < MOST_PREPARED
        if passing:
            has_room = has_room and len(self._passing) < MOST_PASSING
        may = self._faults == _faults and has_room
        return may and uses >= PREPARED_AT and name not in self._given

    def give(self, name: str, *, passing: bool) -> None:
        """The next message prepares it."""
        self._travelling.add(name)
        self._given.add(name)
        if passing:
            self._passing.add(name)

    def note_sent(self, fault: BaseException | None = None) -> None:
        """What travelled is known, unless there was a fault; then nobody can tell, and it is left.

        Where the server refuses what was prepared, no connection that there is uses it any more.
        """
        global _faults
        if fault is None:
            self._known |= self._travelling
        elif isinstance(fault, FORGOTTEN):
            _faults += 1
        self._travelling.clear()

    def note_unsent(self) -> None:
        """The message was given up."""
        self._given -= self._travelling
        self._passing -= self._travelling
        self._travelling.clear()
