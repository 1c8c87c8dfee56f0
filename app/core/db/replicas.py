"""Reading from replicas: PostgreSQL's standbys, which replay what the primary writes.

A replica is read only if it has replayed everything that the primary had written
``REPLICA_MAX_LAG`` seconds ago, and what the request names. This compares positions in the WAL, so
it needs no clocks and holds while the primary writes nothing. Each process watches its servers, one
thread each: the primary's position, and whether a replica answers and how far it is. So a replica
that does not answer delays only the requests that read from it at that moment.

Nothing depends on a replica. A read that fails there is repeated on the primary, and so is one
whose answer is an error: that a row is missing is never the answer of a replica that is behind.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import psycopg2
from flask import Flask
from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.config import Config
from app.core.db import tenancy, transactions
from app.core.db.engine import Limits, configure_engine, engine_options, waiting_at_most
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction, current_transaction, transaction
from app.core.errors import AppError
from app.core.observability.metrics import count_read
from app.extensions import db

T = TypeVar("T")
log = logging.getLogger(__name__)

EXTENSION = "replicas"
PRIMARY = "primary"  # among the names of the replicas, in the metrics
INTERVAL = 0.25  # seconds between two looks at a server
ANSWER = 0.5  # seconds in which a replica must answer the question how far it is
WAIT = 0.1  # seconds that a request waits for a replica to replay what the request names
PAUSE = 0.005  # seconds between two questions while it waits
REMEMBERED = 1200  # positions of the primary, which are those of five minutes
FAULTS = (psycopg2.Error, PoolTimeout)


def _bytes(position: Any) -> ColumnElement[int]:
    """A position in the WAL as bytes since its beginning."""
    return cast(func.pg_wal_lsn_diff(position, "0/0"), BigInteger)


_STATE = (
    func.pg_is_in_recovery().label("is_standby"),
    _bytes(func.pg_last_wal_replay_lsn()).label("position"),
)
WRITTEN = Statement("replicas.written", select(_bytes(func.pg_current_wal_flush_lsn())))
STATE = Statement("replicas.state", select(*_STATE))
ENTER = Statement(
    "replicas.enter",
    select(*tenancy.settings(bindparam("tenant_id"), bindparam("platform")), *_STATE),
)


class State(StrEnum):
    """Whether a replica is read, and why not."""

    OK = "ok"
    LAGGING = "lagging"
    PROMOTED = "promoted"
    UNAVAILABLE = "unavailable"


class NotReadable(Exception):
    """The replica is behind, or is none any more."""

    def __init__(self, state: State) -> None:
        super().__init__(state.value)
        self.state = state


class Replica:
    """One standby, as this process knows it."""

    def __init__(self, number: int, url: str) -> None:
        parsed = make_url(url)
        self.bind = f"replica_{number}"
        self.name = f"{parsed.host or parsed.query.get('host', 'localhost')}:{parsed.port or 5432}"
        self.state = State.UNAVAILABLE  # until it has answered
        self.position = 0

    def note(self, state: State) -> None:
        """Set the state, and log one that is new."""
        if state is not self.state:
            level = logging.INFO if state is State.OK else logging.WARNING
            log.log(level, "replica_state", extra={"replica": self.name, "state": state.value})
        self.state = state


class Replicas:
    """The replicas of an application. Safe for threads; a forked process starts anew."""

    def __init__(self, app: Flask, config: Config) -> None:
        self.max_lag = config.replica_max_lag
        self._app = app
        self._urls = config.database_replica_urls
        self._most_waiting = max(1, config.db_pool_size // 4)
        self._start_anew()
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self.all = [Replica(number, url) for number, url in enumerate(self._urls, 1)]
        self._written: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._places = threading.BoundedSemaphore(self._most_waiting)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_stopped = threading.Event()

    def choose(self, after: int = 0) -> Replica | None:
        """A replica to read from; one that is known to have replayed ``after``, if there is one."""
        self.watch()
        if self._floor() is None:
            return None
        readable = [each for each in self.all if each.state is State.OK]
        order = {each: (each.position >= after, random.random()) for each in readable}  # noqa: S311
        return max(readable, key=order.__getitem__, default=None)

    def read(
        self, replica: Replica, work: Callable[[], T], facts: Mapping[str, Any], after: int = 0
    ) -> T:
        """``work()`` on the replica, in the scope of ``facts``; on the primary where that fails.

        ``facts`` are those of the transaction that has authenticated the request.
        """
        current = Transaction(replica.bind, "BEGIN READ ONLY", facts=dict(facts))
        try:
            with transaction(current):
                self._enter(replica, after)
                found = work()
        except (*FAULTS, AppError, NotReadable) as fault:
            self._note_failure(replica, current, fault)
        else:
            count_read(replica.name)
            return found
        found = transactions.run(partial(_with_facts, work, facts))
        count_read(PRIMARY)
        return found

    def lag(self, replica: Replica) -> float:
        """Seconds that the replica is behind the primary, when both were last asked; at most 300."""
        written, now = list(self._written), time.monotonic()
        if not written or replica.position >= written[-1][1]:
            return 0.0
        known = (moment for moment, position in written if position > replica.position)
        return now - next(known)

    def watch(self) -> None:
        """Begin to watch the servers, unless this process does so."""
        if self._threads:
            return
        with self._lock:
            if not self._threads:
                looks = [self.look_at_primary, *(partial(self.look_at, each) for each in self.all)]
                self._threads = [
                    threading.Thread(
                        target=self._repeat, args=(look,), name="replicas", daemon=True
                    )
                    for look in looks
                ]
                for thread in self._threads:
                    thread.start()

    def stop(self) -> None:
        """End the threads; for tests."""
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def look_at_primary(self) -> None:
        """Note how far the primary has written; nothing if it does not answer."""
        now = time.monotonic()
        try:
            with transaction(Transaction(begin="")):
                self._written.append((now, WRITTEN.scalar()))
        except FAULTS as fault:
            log.info("primary_not_watched", extra={"reason": type(fault).__name__})

    def look_at(self, replica: Replica) -> None:
        """Note whether the replica can be read, and how far it is."""
        try:
            with (
                transaction(Transaction(replica.bind, "")) as current,
                waiting_at_most(ANSWER, current.cursor.connection),
            ):
                found = STATE.first()
        except FAULTS:
            replica.note(State.UNAVAILABLE)
            return
        if not found.is_standby:
            replica.note(State.PROMOTED)
            return
        replica.position = found.position or 0
        floor = self._floor()
        if floor is not None:
            replica.note(State.OK if replica.position >= floor else State.LAGGING)

    def _repeat(self, look: Callable[[], None]) -> None:
        with self._app.app_context():
            while not self._is_stopped.is_set():
                try:
                    look()
                except Exception:  # the thread must not end
                    log.exception("replica_watch_failed")
                self._is_stopped.wait(INTERVAL)

    def _floor(self) -> int | None:
        """The position that a replica must have replayed; None if the primary's is not known."""
        oldest = time.monotonic() - self.max_lag
        known = (position for moment, position in list(self._written) if moment >= oldest)
        return next(known, None)

    def _enter(self, replica: Replica, after: int) -> None:
        """Set the scope and check the replica in the same statement; wait for ``after``.

        Raises NotReadable.
        """
        scope = tenancy.current_scope()
        with waiting_at_most(ANSWER, current_transaction().cursor.connection):
            found = ENTER.first(**tenancy.values_of(scope))
        tenancy.note(scope, found.server_process_id)
        if not found.is_standby:
            raise NotReadable(State.PROMOTED)
        floor = self._floor()
        if floor is None or found.position < floor:
            raise NotReadable(State.LAGGING)
        if found.position < after:
            self._wait_for(after)

    def _wait_for(self, after: int) -> None:
        """Wait, at most :data:`WAIT`; a quarter of the threads may wait, and at least one."""
        if not self._places.acquire(blocking=False):
            raise NotReadable(State.OK)
        try:
            ends = time.monotonic() + WAIT
            while STATE.first().position < after:
                if time.monotonic() > ends:
                    raise NotReadable(State.OK)
                time.sleep(PAUSE)
        finally:
            self._places.release()

    def _note_failure(self, replica: Replica, current: Transaction, fault: Exception) -> None:
        if isinstance(fault, AppError):
            return
        log.info(
            "replica_not_read",
            extra={"replica": replica.name, "reason": str(fault).partition("\n")[0]},
        )
        if isinstance(fault, NotReadable):
            replica.note(fault.state)
        elif current.is_lost or (isinstance(fault, psycopg2.Error) and fault.pgcode is None):
            replica.note(State.UNAVAILABLE)


def open_databases(app: Flask, config: Config) -> None:
    """Create the engines of the primary and of the replicas, and the :class:`Replicas`, if any."""
    primary, replicas = Limits.of_primary(config), Limits.of_replicas(config)
    options = engine_options(config, replicas)
    app.config["SQLALCHEMY_DATABASE_URI"] = config.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options(config, primary)
    if config.database_replica_urls:
        app.extensions[EXTENSION] = found = Replicas(app, config)
        app.config["SQLALCHEMY_BINDS"] = {
            each.bind: {"url": url, **options}
            for each, url in zip(found.all, config.database_replica_urls, strict=True)
        }
    db.init_app(app)
    with app.app_context():
        for bind, engine in db.engines.items():
            configure_engine(engine, config, replicas if bind else primary)


def _with_facts(work: Callable[[], T], facts: Mapping[str, Any]) -> T:
    transactions.context().update(facts)
    tenancy.enter(tenancy.current_scope())
    return work()
