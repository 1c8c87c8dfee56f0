"""Transactions: all code that reads or writes the database runs in :func:`transaction`.

No other module commits. Use :func:`on_commit` for what must happen only after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import psycopg2
from psycopg2 import extensions
from psycopg2.errors import ReadOnlySqlTransaction
from sqlalchemy import PoolProxiedConnection
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.datastructures import ETags

from app.core.db import json_rows
from app.core.db.prepared import PREPARED, PreparedStatements
from app.extensions import db

if TYPE_CHECKING:
    from app.core.db.replicas.watch import Replica
    from app.core.db.tenancy import Scope

log = logging.getLogger(__name__)

DATABASE_FAULTS = (psycopg2.Error, PoolTimeout)  # the latter: no connection is free
IDLE = extensions.TRANSACTION_STATUS_IDLE
# The end of the WAL in bytes, with what is not flushed: correct with any synchronous_commit.
WAL_POSITION = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
STALE_PREPARED = {"26000", "0A000"}  # a prepared statement is unknown, or its columns changed
# Writes a WAL record, because PostgreSQL's commit waits for standbys only after a write.
WRITE = (
    "SELECT pg_logical_emit_message(true, 'controlplane', '')"
    " WHERE current_setting('synchronous_standby_names') <> ''"
)
observers: list[Callable[[str, str], AbstractContextManager[object]]] = []
"""Each gets a statement's name and template. The statement is sent in the context it returns."""


class NotReplicated(psycopg2.OperationalError):
    """The commit is on the primary only, because somebody cancelled its wait for a standby.

    PostgreSQL only warns. The changes are visible, but are lost if the primary is lost.
    """


class RowChanged(Exception):
    """Another transaction changed a row after this transaction had read it."""


@dataclass
class Transaction:
    """One transaction. It takes a connection from the pool at its first statement.

    With an empty ``begin``, neither BEGIN nor COMMIT is sent. Each statement is then a transaction
    of its own, and PostgreSQL forgets the scope at the statement's end. With ``tells_position``,
    ``position`` is the primary's WAL position after the commit.
    """

    bind: str | None = None  # the name of the replica that it reads from; None: the primary
    begin: str = "BEGIN"
    tells_position: bool = False
    position: int | None = None
    standby: Replica | None = None  # see read_from()
    scope: Scope | None = None  # see app.core.db.tenancy
    precondition: ETags | None = None  # the request's If-Match
    known: dict[Hashable, Any] = field(default_factory=dict)
    """A cache of values for this transaction, such as the rules of a tenant's custom fields."""
    callbacks: list[Callable[[], object]] = field(default_factory=list)
    is_committing: bool = False
    is_lost: bool = False  # the connection broke, or must be closed
    has_begun: bool = False
    has_written: bool = False
    is_confirming: bool = False
    """Whether the commit waits until all commits that the transaction has seen are replicated.

    Requests for changes need this even if they write nothing. A client may repeat a change after a
    503, and find it already made by a commit that no standby has yet.
    """

    @cached_property
    def connection(self) -> PoolProxiedConnection:
        return db.engines[self.bind].raw_connection()

    @cached_property
    def cursor(self) -> extensions.cursor:
        return cast("extensions.cursor", self.connection.cursor())

    @cached_property
    def prepared(self) -> PreparedStatements | None:
        """The connection's prepared statements; None with ``DB_PREPARE=0`` or a pooler."""
        return self.connection.info.get(PREPARED)

    def execute(
        self,
        text: str,
        values: Mapping[str, object] | Sequence[object] | None = None,
        *,
        name: str = "",
        template: str = "",
        as_json: bool = False,
    ) -> extensions.cursor:
        """Send one statement and return the cursor with its result.

        BEGIN and the first statement are sent in one round trip. Observers get ``name`` and
        ``template``, which contain no values.
        """
        cursor = json_rows.open_cursor(self.cursor.connection) if as_json else self.cursor
        if self.begin and not self.has_begun:
            self.has_begun = True
            text = f"{self.begin};{text}"
        if not observers:
            cursor.execute(text, values)
            return cursor
        with ExitStack() as stack:
            for observe in observers:
                stack.enter_context(observe(name, template))
            cursor.execute(text, values)
        return cursor

    def commit(self) -> None:
        """Send COMMIT, unless no statement was sent.

        Raises RuntimeError if a statement has failed and its error was suppressed, because
        PostgreSQL would then roll back without an error. Raises :class:`NotReplicated` if
        PostgreSQL warns: no other warning is possible here.
        """
        if not self.has_begun:
            return
        status = self.cursor.connection.get_transaction_status()
        if status in (IDLE, extensions.TRANSACTION_STATUS_INERROR):
            raise RuntimeError("a statement of this transaction failed, so it cannot commit")
        self.is_committing = True
        notices = self.cursor.connection.notices
        notices.clear()
        text = f"{WRITE};COMMIT" if self.is_confirming and not self.has_written else "COMMIT"
        if self.tells_position:
            text += f";SELECT {WAL_POSITION}"
        self.execute(text, name="COMMIT")
        if self.tells_position and (row := self.cursor.fetchone()):
            self.position = row[0]
        self.has_begun = False
        if notices:
            raise NotReplicated(notices[-1].strip())

    def read_from(self, standby: Replica) -> None:
        """Read from a replica from now on. ``begin`` must be empty, so no transaction is open."""
        self.close()
        self.standby, self.bind, self.begin = standby, standby.bind, "BEGIN READ ONLY"

    def close(self) -> None:
        """Roll back what was not committed, and return the connection to the pool."""
        properties = ("connection", "cursor", "prepared")
        connection, cursor, _ = (vars(self).pop(name, None) for name in properties)
        self.has_begun = False
        if connection is None:
            return
        try:
            if self.is_lost:
                self._discard(connection)
            elif cursor and cursor.connection.get_transaction_status() != IDLE:
                cursor.execute("ROLLBACK")
        except psycopg2.Error:
            self.is_lost = True
            self._discard(connection)
        finally:
            connection.close()

    def _discard(self, connection: PoolProxiedConnection) -> None:
        """Close the connection and all idle connections of its pool: they have the same fault."""
        connection.invalidate()
        db.engines[self.bind].dispose()


_current: ContextVar[Transaction | None] = ContextVar("current_transaction", default=None)


@contextmanager
def transaction(current: Transaction | None = None) -> Iterator[Transaction]:
    """Run the block in one transaction: commit at its end, roll back on any error.

    Callbacks of :func:`on_commit` run after the commit, in order. An error of a callback is only
    logged, because the changes are already durable. Raises RuntimeError inside a transaction.
    """
    if _current.get() is not None:
        raise RuntimeError("transaction() does not nest")
    current = current or Transaction()
    entered = _current.set(current)
    try:
        yield current
        current.commit()
    except psycopg2.Error as fault:
        is_demoted = isinstance(fault, ReadOnlySqlTransaction) and current.bind is None
        current.is_lost = is_demoted or fault.pgcode in STALE_PREPARED
        if is_demoted:
            raise psycopg2.OperationalError("PostgreSQL is not the primary any more.") from fault
        raise
    finally:
        _current.reset(entered)
        current.close()
    for callback in current.callbacks:
        try:
            callback()
        except Exception:
            log.exception("on_commit_failed")


@contextmanager
def savepoint() -> Iterator[None]:
    """Run the block in a savepoint.

    An error undoes the block's changes, scope, values and callbacks.
    """
    current = current_transaction()
    scope, known, callbacks = current.scope, dict(current.known), list(current.callbacks)
    current.execute("SAVEPOINT inner_block", name="SAVEPOINT")
    try:
        yield
    except BaseException:
        current.scope, current.known, current.callbacks = scope, known, callbacks
        # Released too, so that a block around this one rolls back to its own savepoint.
        undo = "ROLLBACK TO SAVEPOINT inner_block; RELEASE SAVEPOINT inner_block"
        current.execute(undo, name="ROLLBACK TO SAVEPOINT")
        raise
    current.execute("RELEASE SAVEPOINT inner_block", name="RELEASE SAVEPOINT")


def on_commit(callback: Callable[[], object]) -> None:
    """Call ``callback`` after the current transaction's commit. A rollback discards it."""
    current_transaction().callbacks.append(callback)


def is_open() -> bool:
    return _current.get() is not None


def current_transaction() -> Transaction:
    """The open transaction; RuntimeError if there is none."""
    current = _current.get()
    if current is None:
        raise RuntimeError("this needs an open transaction")
    return current
