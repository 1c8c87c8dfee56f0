"""psycopg2 with fewer messages: a round trip to PostgreSQL costs more than most statements.

Stock psycopg2 sends BEGIN, every statement and COMMIT each as a message of its own and waits for
each answer. Here BEGIN travels with the first statement, and what a flush or
:func:`app.core.db.statements.write` writes waits until something is read, or for COMMIT, and travels
with that; PostgreSQL runs the statements of one message in order (simple query protocol). A
transaction that locks a row, changes it and records the change so takes two messages instead of
five. A fault of a write shows at the next statement, at :meth:`Connection.settle`, or at the commit.

A write that waits is taken to have changed one row, as the unit of work expects. The server checks
that: ``must_change_one`` fails the transaction (40001, so it is run again) where it did not.

What is asked for often is prepared (:mod:`app.core.db.preparing`), in the message that asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any
from uuid import UUID, SafeUUID

from psycopg2 import OperationalError
from psycopg2.extensions import connection, cursor, new_type, register_type
from sqlalchemy import event
from sqlalchemy.orm import Session

from app.core.circuit_breaker import Breaker
from app.core.db.preparing import Prepared
from app.core.db.watchdog import Watch

WRITES = ("INSERT", "UPDATE", "DELETE")
SLOW = 1.0  # seconds after which a refused connection is a server that does not answer
PAUSE = 1.0  # seconds for which such a server is left alone, but for one thread that tries
LARGE, MANY = 65_536, 100  # bytes of a message, and rows of an answer, that nobody keeps
UUID_OID = 2950
# A UUID refuses to be changed; these write its two slots all the same.
_set_int, _set_is_safe = (getattr(UUID, name).__set__ for name in ("int", "is_safe"))
_new, _UNKNOWN = object.__new__, SafeUUID.unknown  # looking them up counts: a list has many ids
CHECKED = (  # a function is called for what it takes to call one, so only where there is a fault
    b"WITH changed AS (%s RETURNING 1)"
    b" SELECT CASE WHEN count(*) <> 1 THEN must_change_one(count(*)) END FROM changed"
)


class Connection(connection):
    """Give it to SQLAlchemy as ``connect_args={"connection_factory": …}``; see :func:`bounded_by`."""

    def __init__(self, dsn: str, *args: Any, wait_limit: float, **options: Any) -> None:
        breaker = _breaker(dsn)
        if not breaker.permits():
            raise OperationalError("PostgreSQL did not answer a moment ago.")
        started = time.monotonic()
        try:
            super().__init__(dsn, *args, **options)
        except OperationalError:
            if time.monotonic() - started > SLOW:
                breaker.note_failure()
            raise
        breaker.note_success()
        self.watch = Watch(self.fileno(), wait_limit, breaker.note_failure)
        self.autocommit = True
        self.cursor_factory = Cursor
        if self.info.parameter_status("TimeZone") != "UTC":  # a pooler ignores start-up options
            with self.cursor(cursor_factory=cursor) as plain:
                plain.execute("SET TIME ZONE 'UTC'")
        self.begun = False
        self.flushing = False
        self.companion = b""
        self.waiting: list[bytes] = []
        self._has_writes = False  # among what waits
        self.prepared = Prepared()
        self._may_prepare: bool | None = None  # not known before it is asked for
        self.shared = self.cursor(cursor_factory=Cursor)  # whoever sends reads the answer at once

    def commit(self) -> None:
        """Send what waits and end the transaction, if one was begun."""
        if self.begun:
            self.send(b"COMMIT")
        self._ended()

    def rollback(self) -> None:
        """Give the transaction up, if one was begun."""
        begun = self.begun
        self._ended()
        if begun:
            self.send(b"ROLLBACK")

    def send(self, *further: bytes) -> None:
        """Send what waits, and ``further`` statements, in one message."""
        self.shared.send(*further)

    def defer(self, statement: bytes) -> None:
        """Have a write wait."""
        self.begin()
        self.waiting.append(statement)
        self._has_writes = True

    def knows(self, name: str, text: Callable[[], bytes], *, passing: bool) -> bool:
        """Whether the statement ``name`` is prepared, or will be by the message that it travels with.

        It is when this is asked often enough, as long as there is room, of which statements that are
        ``passing`` do not get all; never behind a pooler such as PgBouncer, where the next transaction
        may meet another server.
        """
        if name in self.prepared:
            return True
        if not self.prepared.is_due(name, passing=passing) or not self._is_direct():
            return False
        self.waiting.append(b"PREPARE %s AS %s" % (name.encode(), text()))
        self.prepared.give(name, passing=passing)
        return True

    def begin(self) -> None:
        """Have BEGIN travel with the next statement, unless it has already."""
        if not self.begun:
            self.begun = True
            self.waiting.append(b"BEGIN")
            if self.companion:
                self.waiting.append(self.companion)

    def accompany(self, statement: bytes) -> None:
        """Have ``statement`` hold, which sets something for one transaction, until this one ends.

        PostgreSQL runs one message in one transaction. So before BEGIN it travels with each.
        """
        self.companion = statement
        if self.begun:
            self.waiting.append(statement)

    def settle(self) -> None:
        """Send the writes that wait, so that a fault of theirs shows here."""
        if self.waiting:
            self.send()

    def before(self, *further: bytes) -> bytes:
        """What waits and then ``further`` as one text; nothing waits any more."""
        if self.companion and not self.begun:
            self.waiting.append(self.companion)
        message = b";".join([*self.waiting, *further])
        self.waiting, self._has_writes = [], False
        return message

    def _is_direct(self) -> bool:
        """Whether the server is the one connected to; not asked while a write waits, which may fail."""
        if self._may_prepare is None and not self._has_writes:
            self.shared.send(b"SELECT pg_backend_pid()")
            self._may_prepare = self.shared.fetchone() == (self.info.backend_pid,)
        return bool(self._may_prepare)

    def _ended(self) -> None:
        self.begun = self.flushing = False
        self.companion = b""
        self.waiting, self._has_writes = [], False
        self.prepared.note_unsent()
        if len(self.shared.query or b"") > LARGE or self.shared.rowcount > MANY:
            self.shared.close()  # it would hold them until it is used again
            self.shared = self.cursor(cursor_factory=Cursor)


class Cursor(cursor):
    """Puts statements together into messages."""

    connection: Connection
    _waiting = 0  # rows that the last statement will change, where it waits

    def execute(self, query: Any, vars: Any = None) -> None:
        """Send ``query`` after what waits; the plain writes of a flush wait themselves."""
        connection = self.connection
        statement = self.mogrify(query, vars)
        connection.begin()
        if connection.flushing and query.startswith(WRITES) and "RETURNING" not in query:
            changes_one = not query.startswith("INSERT")
            connection.defer(framed(statement, changes_one=changes_one))
            self._waiting = 1
        else:
            self._waiting = 0
            self.send(statement)

    def send(self, *statements: bytes) -> None:
        """Send what waits, and ``statements``, in one message; the answer is the last one's."""
        connection = self.connection
        try:
            with connection.watch:
                super().execute(connection.before(*statements))
        except BaseException as fault:
            connection.prepared.note_sent(fault)
            raise
        connection.prepared.note_sent()

    def executemany(self, query: Any, vars_list: Iterable[Any]) -> None:
        """Run ``query`` for each of ``vars_list``."""
        rows = 0
        for values in vars_list:
            self.execute(query, values)
            rows += self._waiting
        self._waiting = rows

    @property
    def rowcount(self) -> int:
        """How many rows the last statement gave or changed; one for a write that waits."""
        return self._waiting or super().rowcount


def framed(statement: bytes, *, changes_one: bool) -> bytes:
    """A write that, with ``changes_one``, fails its transaction where it does not change one row."""
    return CHECKED % statement if changes_one else statement


def bounded_by(seconds: float) -> Callable[..., Connection]:
    """The factory of connections whose calls end after ``seconds``, whatever the server does."""
    return partial(Connection, wait_limit=seconds)


def read_ids(opened: Any, *_: Any) -> None:
    """Have UUIDs of a new connection made without the constructor's many checks."""
    register_type(new_type((UUID_OID,), "UUID", _read_id), opened)


def _read_id(text: Any, _cursor: Any) -> UUID | None:
    if text is None:
        return None
    made = _new(UUID)
    _set_int(made, int(text.replace("-", ""), 16))
    _set_is_safe(made, _UNKNOWN)
    return made


@cache
def _breaker(dsn: str) -> Breaker:
    return Breaker(PAUSE)


def _connection_of(session: Session) -> Connection | None:
    found = session.connection().connection.dbapi_connection
    return found if isinstance(found, Connection) else None


@event.listens_for(Session, "before_flush")
def _begin_flush(session: Session, *_: Any) -> None:
    opened = _connection_of(session)
    if opened is not None:
        opened.flushing = True
        session.info["flushing"] = opened


@event.listens_for(Session, "after_soft_rollback")
@event.listens_for(Session, "after_flush")
def _end_flush(session: Session, *_: Any) -> None:
    opened = session.info.pop("flushing", None)
    if opened is not None:
        opened.flushing = False
