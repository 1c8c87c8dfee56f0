"""Watches the replicas: whether each answers, and how far it has replayed the primary's WAL.

One thread watches each server. So a replica that does not answer delays only the requests that read
from it at that moment. Replicas are compared with the primary by WAL positions. So differences of
clocks have no effect, and a replica does not count as late while the primary writes nothing.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from functools import partial

import psycopg2
from flask import Flask
from sqlalchemy import BigInteger, ColumnElement, cast, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.config import Config
from app.core.db.engine import waiting_at_most
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction, transaction
from app.core.errors import AppError

log = logging.getLogger(__name__)

INTERVAL = 0.25  # seconds between two checks of a server
ANSWER = 0.5  # seconds within which a replica must answer a check
REMEMBERED = 1200  # positions of the primary that are stored: five minutes
FAULTS = (psycopg2.Error, PoolTimeout)


def _bytes(position: ColumnElement[str]) -> ColumnElement[int]:
    """A WAL position, in bytes since the beginning of the WAL."""
    return cast(func.pg_wal_lsn_diff(position, "0/0"), BigInteger)


STATE_OF_REPLICA = (
    func.pg_is_in_recovery().label("is_standby"),
    _bytes(func.pg_last_wal_replay_lsn()).label("position"),
)
GET_STATE = Statement("replicas.get_state", select(*STATE_OF_REPLICA))
GET_WRITTEN = Statement("replicas.get_written", select(_bytes(func.pg_current_wal_flush_lsn())))


class State(StrEnum):
    """A replica's state. Only a replica in the state OK is read."""

    OK = "ok"
    LAGGING = "lagging"
    PRIMARY = "primary"  # not a standby: the URL is the primary's, or the replica was promoted
    UNAVAILABLE = "unavailable"


class NotReadable(Exception):
    """The replica is not a standby, or has not replayed enough."""


class Replica:
    """One standby, as this process saw it last."""

    def __init__(self, number: int, url: str) -> None:
        parsed = make_url(url)
        self.bind = f"replica_{number}"
        self.name = f"{parsed.host or parsed.query.get('host', 'localhost')}:{parsed.port or 5432}"
        self.state = State.UNAVAILABLE  # until the first answer
        self.position = 0  # replayed, in bytes since the beginning of the WAL
        self.lag = 0.0  # an upper bound in seconds, at the last check

    def note(self, state: State) -> None:
        """Set the state. Log it if it has changed."""
        if state is not self.state:
            level = logging.INFO if state is State.OK else logging.WARNING
            log.log(level, "replica_state", extra={"replica": self.name, "state": state.value})
        self.state = state

    def note_failure(self, current: Transaction, fault: Exception) -> None:
        """Log a failed read. If the replica did not answer, do not read it until it is ``ok``."""
        if isinstance(fault, AppError):
            return
        reason = str(fault).partition("\n")[0]
        log.info("replica_not_read", extra={"replica": self.name, "reason": reason})
        if current.is_lost or (isinstance(fault, psycopg2.Error) and fault.pgcode is None):
            self.note(State.UNAVAILABLE)


class Replicas:
    """The replicas of an application, and the threads that watch them and the primary.

    Thread-safe. A forked process starts with unknown states and no threads.
    """

    def __init__(self, app: Flask, config: Config) -> None:
        self.app = app
        self.urls = config.database_replica_urls
        self.max_lag = config.replica_max_lag
        self._start_anew()
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self.all = [Replica(number, url) for number, url in enumerate(self.urls, 1)]
        self._written: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_stopped = threading.Event()

    def start(self) -> None:
        """Start the threads, unless this process has started them."""
        if self._threads:
            return
        with self._lock:
            if not self._threads:
                looks = (self.look_at_primary, *(partial(self.look_at, r) for r in self.all))
                self._threads = [
                    threading.Thread(target=self._repeat, args=[look], name="replicas", daemon=True)
                    for look in looks
                ]
                for thread in self._threads:
                    thread.start()

    def stop(self) -> None:
        """End the threads; for tests."""
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def choose(self, after: int) -> Replica | None:
        """A random replica that is OK, or None; those that have replayed ``after`` come first."""
        readable = [each for each in self.all if each.state is State.OK]
        random.shuffle(readable)
        return max(readable, key=lambda each: each.position >= after, default=None)

    def floor(self) -> int | None:
        """The WAL position that a replica must have replayed; None if the primary did not answer.

        The primary had written it at most ``max_lag`` seconds ago.
        """
        oldest = time.monotonic() - self.max_lag
        known = (position for moment, position in list(self._written) if moment >= oldest)
        return next(known, None)

    def look_at_primary(self) -> None:
        """Store the primary's WAL position, unless the primary does not answer."""
        now = time.monotonic()
        try:
            with transaction(Transaction(begin="")):
                self._written.append((now, GET_WRITTEN.scalar()))
        except FAULTS as fault:
            log.info("primary_not_watched", extra={"reason": type(fault).__name__})

    def look_at(self, replica: Replica) -> None:
        """Store the replica's state, WAL position and lag."""
        try:
            with (
                transaction(Transaction(replica.bind, "")) as current,
                waiting_at_most(ANSWER, current.cursor.connection),
            ):
                found = GET_STATE.first()
        except FAULTS:
            found = None
            replica.note(State.UNAVAILABLE)
        if found and found.is_standby:
            replica.position = found.position or 0
            floor = self.floor()
            if floor is not None:
                replica.note(State.OK if replica.position >= floor else State.LAGGING)
        elif found:
            replica.note(State.PRIMARY)
        replica.lag = self._lag_of(replica.position)

    def _lag_of(self, position: int) -> float:
        """Seconds since the primary was at ``position``; at most 300, as older ones are unknown."""
        written = list(self._written)
        if not written or position >= written[-1][1]:
            return 0.0
        replayed = [moment for moment, there in written if there <= position]
        return time.monotonic() - (replayed[-1] if replayed else written[0][0])

    def _repeat(self, look: Callable[[], None]) -> None:
        with self.app.app_context():
            while not self._is_stopped.is_set():
                try:
                    look()
                except Exception:  # the thread must not end
                    log.exception("replica_watch_failed")
                self._is_stopped.wait(INTERVAL)
