"""The one unit of work: everything that writes runs in :func:`transaction`.

Nothing else in the program commits. What must happen only when the change is
durable (pushing a job) is handed to :func:`on_commit`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, TypeVar, cast

import psycopg2
from sqlalchemy import Connection, Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.core.db import connections
from app.extensions import current_unit, db

T = TypeVar("T")
log = logging.getLogger(__name__)

NONE: Mapping[str, Any] = {}
ATTEMPTS = 4
# serialization_failure, deadlock_detected, and what a prepared statement is refused with
RETRIED = {"40001", "40P01", "26000", "42P05", "0A000"}


class _Kept(threading.local):
    """The connection that a thread keeps between its transactions; none before :func:`keep_connections`."""

    is_wanted = False
    pooled: Any = None

    def take(self, pool: Any) -> PoolProxiedConnection | None:
        """The one that was given, which is kept no more; none where the pool would open a new one."""
        pooled, self.pooled = self.pooled, None
        if pooled is None:
            return None
        if pooled._pool is pool and pooled._connection_record.starttime >= pool._invalidate_time:
            return cast("PoolProxiedConnection", pooled)
        pooled.close()
        return None

    def give(self, pooled: PoolProxiedConnection) -> bool:
        """Keep a connection on which nothing is open; whether it is kept."""
        driver: Any = pooled.dbapi_connection
        if not _Kept.is_wanted or self.pooled is not None or driver is None or driver.begun:
            return False
        driver.rollback()  # sends nothing, but forgets what was set for a transaction
        self.pooled = pooled
        return True


_kept = _Kept()


def keep_connections() -> None:
    """Have each thread of this process keep the connection of a transaction that used it alone.

    To give it to the pool and take it again costs a twentieth of a read. What SQLAlchemy's connection
    was made for (the ORM's session, a fault, somebody who listens) goes back to the pool. For a process
    whose threads are no more than the pool's connections: what one keeps, no other gets.
    """
    _Kept.is_wanted = True


@dataclass
class Unit:
    """What belongs to one transaction; after a failed commit nobody knows whether it happened."""

    is_committing: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    callbacks: list[Callable[[], Any]] = field(default_factory=list)
    session: Session | None = None  # the ORM's, where somebody uses one
    known: Any = None  # an answer read ahead, see app.core.db.ahead
    _pooled: PoolProxiedConnection | None = None
    _connection: Connection | None = None

    @cached_property
    def engine(self) -> Engine:
        """Whose pool its connection is from."""
        return db.engine

    def driver(self) -> connections.Connection:
        """psycopg2's connection, the thread's own or the pool's, from when somebody first asks for it."""
        if self._pooled is None:
            try:
                self._pooled = _kept.take(self.engine.pool) or self.engine.raw_connection()
            except psycopg2.Error as fault:
                dialect = self.engine.dialect
                Connection._handle_dbapi_exception_noconnection(fault, dialect, self.engine)
        found: Any = self._pooled.dbapi_connection or self.connection().connection
        return cast("connections.Connection", found)

    def connection(self) -> Connection:
        """SQLAlchemy's connection, around psycopg2's; making one takes longer than using it."""
        self.known = None  # whoever uses it may change that
        if self._connection is None:
            self.driver()
            self._connection = Connection(self.engine, self._pooled)
            self._connection.begin()
        return self._connection

    def commit(self) -> None:
        """Make it durable: first what the ORM's session has pending, if there is one."""
        flush_session()
        self.is_committing = True
        if self._connection is not None:
            begun = self._connection.get_transaction()
            if begun is not None:
                begun.commit()
        elif self._pooled is not None:
            try:
                self.driver().commit()
            except psycopg2.Error as fault:
                self.fail(fault)

    def fail(
        self, fault: Exception, text: str = "", parameters: Mapping[str, Any] = NONE
    ) -> NoReturn:
        """Raise SQLAlchemy's error for psycopg2's; a connection that is lost is not used again."""
        self.connection()._handle_dbapi_exception(fault, text, parameters, None, None)

    def end(self) -> None:
        """Give the connection up; what was not committed is rolled back."""
        if self.session is not None:
            db.session.remove()
            self.session = None
        pooled, opened = self._pooled, self._connection
        self._pooled = self._connection = None
        if opened is None:
            if pooled is not None and not _kept.give(pooled):
                pooled.close()
            return
        begun = opened.get_transaction()
        try:
            if begun is not None:
                begun.rollback()  # one whose commit failed is still there, open in the database
        finally:
            opened.close()


@contextmanager
def transaction() -> Iterator[Unit]:
    """Run the block in one transaction: commit at its end, roll back on any error.

    Callbacks given to :func:`on_commit` run after the commit, in their order; one
    that fails is logged and stops nothing, since the change is already durable.
    Transactions do not nest: an inner one is a programming error.
    """
    if is_open():
        raise RuntimeError("transaction() does not nest")
    if db.session.registry.registry:
        db.session.remove()  # what was read before belongs to no transaction
    unit = Unit()
    entered = current_unit.set(unit)
    try:
        yield unit
        unit.commit()
    finally:
        try:
            current_unit.reset(entered)
        finally:
            unit.end()
    for callback in unit.callbacks:
        try:
            callback()
        except Exception:
            log.exception("on_commit_failed")


def run(work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction; what is :data:`RETRIED` runs it again.

    At most :data:`ATTEMPTS` times, with a short random pause, then the database's error goes on.
    A connection that turns out to be lost runs it once more, unless that was at the commit.
    """
    unit = Unit()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction() as unit:
                return work()
        except DBAPIError as fault:
            is_lost = fault.connection_invalidated and attempt == 1 and not unit.is_committing
            if attempt == ATTEMPTS or not (is_lost or sqlstate(fault) in RETRIED):
                raise
            log.info("transaction_retried", extra={"attempt": attempt})
            time.sleep(random.uniform(0.005, 0.02) * attempt)  # noqa: S311 - jitter, no secret
    raise AssertionError("unreachable")


def discard() -> None:
    """Give up what the current transaction did so far, after a database error that is tolerated."""
    _current().end()


@contextmanager
def savepoint() -> Iterator[None]:
    """Run the block so that an error in it undoes the block alone, whoever sent its statements."""
    with db.session.begin_nested():
        db.session.connection()  # or SAVEPOINT waits until the session itself sends something
        yield


def on_commit(callback: Callable[[], Any]) -> None:
    """Call ``callback`` once the current transaction is durable; never if it rolls back."""
    _current().callbacks.append(callback)


def is_open() -> bool:
    """Whether a transaction is running."""
    return current_unit.get() is not None


def flushed() -> Unit:
    """The current transaction; what the ORM's session has pending is sent."""
    unit = _current()
    if unit.session is not None:
        unit.session.flush()
    return unit


def accompany(statement: bytes) -> None:
    """Have what ``statement`` sets, for one transaction of PostgreSQL, hold for this whole one."""
    flushed().driver().accompany(statement)


def context() -> dict[str, Any]:
    """Facts that hold for the current transaction only (scope, precondition); empty outside one."""
    unit = current_unit.get()
    return {} if unit is None else unit.facts


def flush_session() -> None:
    """Send what the ORM's session has pending, where somebody uses one."""
    unit = current_unit.get()
    if unit is not None and unit.session is not None:
        unit.session.flush()


def _current() -> Unit:
    unit: Unit | None = current_unit.get()
    if unit is None:
        raise RuntimeError("this needs an open transaction")
    return unit


def sqlstate(fault: BaseException) -> str | None:
    """PostgreSQL's five-character code of a database error, or None."""
    return getattr(getattr(fault, "orig", None), "pgcode", None)
