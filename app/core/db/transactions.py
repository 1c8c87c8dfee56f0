"""Transactions: everything that reads or writes the database runs in :func:`transaction`.

No other module commits. :func:`on_commit` takes what must happen only after the commit.
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
from werkzeug.datastructures import ETags

from app.core.db import json_rows
from app.core.db.prepared import PREPARED, PreparedStatements
from app.extensions import db

if TYPE_CHECKING:
    from app.core.db.replicas.watch import Replica
    from app.core.db.tenancy import Scope

log = logging.getLogger(__name__)

IDLE = extensions.TRANSACTION_STATUS_IDLE
# The end of what was written, as bytes since the beginning. It includes what is not flushed yet, so
# it is right with any synchronous_commit.
WAL_POSITION = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
STALE_PREPARED = {"26000", "0A000"}  # a prepared statement is unknown, or its columns changed
# A commit waits for standbys only if its transaction has written something.
WRITE = (
    "SELECT pg_logical_emit_message(true, 'controlplane', '')"
    " WHERE current_setting('synchronous_standby_names') <> ''"
)
observers: list[Callable[[str, str], AbstractContextManager[object]]] = []
"""Each gets a message's name and template; the message is sent inside the context it returns."""


class NotReplicated(psycopg2.OperationalError):
    """The commit is on the primary alone: somebody cancelled its wait for a standby.

    PostgreSQL only warns of it. The changes are visible. If the primary is lost, they are lost too.
    """


class RowChanged(Exception):
    """Another transaction changed a row after this one had read it."""


@dataclass
class Transaction:
    """One transaction. It takes a connection from the pool at its first statement.

    With an empty ``begin``, neither BEGIN nor COMMIT is sent: each statement is a transaction of
    its own. With ``tells_position``, ``position`` is the primary's WAL position after the commit.
    """

    bind: str | None = None  # the replica that it reads from; None is the primary
    begin: str = "BEGIN"
    tells_position: bool = False
    position: int | None = None
    standby: Replica | None = None  # see read_from()
    scope: Scope | None = None  # see app.core.db.tenancy
    precondition: ETags | None = None  # the request's If-Match
    known: dict[Hashable, Any] = field(default_factory=dict)
    """Values that are read once per transaction, such as the rules of a tenant's custom fields."""
    callbacks: list[Callable[[], object]] = field(default_factory=list)
    is_committing: bool = False
    is_lost: bool = False  # its connection to PostgreSQL broke, or is to a standby
    is_stale: bool = False  # its connection must not be used again
    has_begun: bool = False
    has_written: bool = False
    has_committed: bool = False
    is_confirming: bool = False  # see confirm()

    @cached_property
    def connection(self) -> PoolProxiedConnection:
        return db.engines[self.bind].raw_connection()

    @cached_property
    def cursor(self) -> extensions.cursor:
        return cast("extensions.cursor", self.connection.cursor())

    @cached_property
    def prepared(self) -> PreparedStatements | None:
        """The connection's prepared statements; None with ``DB_PREPARE=0``."""
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

        BEGIN travels with the first statement. Observers get ``name`` and ``template``, which
        hold no values.
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
        """Send COMMIT if any statement was sent.

        RuntimeError if a statement failed and its error was swallowed: PostgreSQL would answer
        COMMIT with a silent rollback. :class:`NotReplicated` if PostgreSQL warns; it warns of
        nothing else here.
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
        """Go on reading from a replica. Nothing may be open on the primary (an empty ``begin``)."""
        self.close()
        self.standby, self.bind, self.begin = standby, standby.bind, "BEGIN READ ONLY"

    def close(self) -> None:
        """Return the connection to the pool; changes that were not committed are rolled back."""
        properties = ("connection", "cursor", "prepared")
        connection, cursor, _ = (vars(self).pop(name, None) for name in properties)
        self.has_begun = False
        if connection is None:
            return
        try:
            if self.is_stale:
                self._discard(connection)
            elif cursor and cursor.connection.get_transaction_status() != IDLE:
                cursor.execute("ROLLBACK")
        except psycopg2.Error:
            self.is_lost = True
            self._discard(connection)
        finally:
            connection.close()

    def _discard(self, connection: PoolProxiedConnection) -> None:
        """Close a connection and all idle ones of the pool, which have the same fault."""
        connection.invalidate()
        db.engines[self.bind].dispose()


_current: ContextVar[Transaction | None] = ContextVar("current_transaction", default=None)


@contextmanager
def transaction(current: Transaction | None = None) -> Iterator[Transaction]:
    """Run the block in one transaction: commit at its end, roll back on any error.

    Callbacks of :func:`on_commit` run after the commit, in order. One that fails is logged and
    stops nothing, because the changes are already durable. Transactions do not nest: RuntimeError.
    """
    if is_open():
        raise RuntimeError("transaction() does not nest")
    current = current or Transaction()
    entered = _current.set(current)
    try:
        yield current
        current.commit()
        current.has_committed = True
    except psycopg2.Error as fault:
        is_demoted = isinstance(fault, ReadOnlySqlTransaction) and current.bind is None
        current.is_lost |= is_demoted
        current.is_stale = is_demoted or fault.pgcode in STALE_PREPARED
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
    """Run the block in a savepoint: an error undoes only the block, and what it has remembered."""
    current = current_transaction()
    known, callbacks = dict(current.known), list(current.callbacks)
    current.execute("SAVEPOINT inner_block", name="SAVEPOINT")
    try:
        yield
    except BaseException:
        current.known, current.callbacks = known, callbacks
        current.execute("ROLLBACK TO SAVEPOINT inner_block", name="ROLLBACK TO SAVEPOINT")
        raise
    current.execute("RELEASE SAVEPOINT inner_block", name="RELEASE SAVEPOINT")


def on_commit(callback: Callable[[], object]) -> None:
    """Call ``callback`` after the current transaction has committed; never if it rolls back."""
    current_transaction().callbacks.append(callback)


def confirm() -> None:
    """Let the commit of the current transaction wait until everything it has read is replicated.

    Requests for changes need this, because they may be sent again after a 503. The change is then
    made already, perhaps by a commit that no standby has yet.
    """
    current_transaction().is_confirming = True


def is_open() -> bool:
    return _current.get() is not None


def current_transaction() -> Transaction:
    """The open transaction; RuntimeError where there is none."""
    current = _current.get()
    if current is None:
        raise RuntimeError("this needs an open transaction")
    return current
