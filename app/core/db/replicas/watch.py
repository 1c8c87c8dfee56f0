"""What a process knows of its replicas: whether each answers, and how far it has replayed.

One thread watches each server. So a replica that does not answer delays only the requests that read
from it at that moment. Replicas are compared with the primary by positions in the WAL: so no clock
counts, and a replica is not taken for late because the primary writes nothing.
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

INTERVAL = 0.25  # seconds between two looks at a server
ANSWER = 0.5  # seconds in which a replica must answer
REMEMBERED = 1200  # positions of the primary, which are those of five minutes
FAULTS = (psycopg2.Error, PoolTimeout)


def _bytes(position: ColumnElement[str]) -> ColumnElement[int]:
    """A position in the WAL as bytes since its beginning."""
    return cast(func.pg_wal_lsn_diff(position, "0/0"), BigInteger)


STATE_OF_REPLICA = (
    func.pg_is_in_recovery().label("is_standby"),
    _bytes(func.pg_last_wal_replay_lsn()).label("position"),
)
GET_STATE = Statement("replicas.get_state", select(*STATE_OF_REPLICA))
GET_WRITTEN = Statement("replicas.get_written", select(_bytes(func.pg_current_wal_flush_lsn())))


class State(StrEnum):
    """Whether a replica is read, and why not."""

    OK = "ok"
    LAGGING = "lagging"
    PRIMARY = "primary"  # no standby: it is the primary, or has been promoted
    UNAVAILABLE = "unavailable"


class NotReadable(Exception):
    """The replica is not a standby, or has not replayed enough; ``state`` is its new state."""

    def __init__(self, reason: str, state: State | None = None) -> None:
        super().__init__(reason)
        self.state = state


class Replica:
    """One standby, as this process knows it."""

    def __init__(self, number: int, url: str) -> None:
        parsed = make_url(url)
        self.bind = f"replica_{number}"
        self.name = f"{parsed.host or parsed.query.get('host', 'localhost')}:{parsed.port or 5432}"
        self.state = State.UNAVAILABLE  # until it has answered
        self.position = 0
        self.lag = 0.0  # seconds, at most; when it was last asked

    def note(self, state: State) -> None:
        """Set the state, and log one that is new."""
        if state is not self.state:
            level = logging.INFO if state is State.OK else logging.WARNING
            log.log(level, "replica_state", extra={"replica": self.name, "state": state.value})
        self.state = state

    def note_failure(self, current: Transaction, fault: Exception) -> None:
        """Log a failed read. A replica that does not answer is read again once it is ``ok``."""
        if isinstance(fault, AppError):
            return
        reason = str(fault).partition("\n")[0]
        log.info("replica_not_read", extra={"replica": self.name, "reason": reason})
        if isinstance(fault, NotReadable):
            if fault.state is not None:
                self.note(fault.state)
        elif current.is_lost or (isinstance(fault, psycopg2.Error) and fault.pgcode is None):
            self.note(State.UNAVAILABLE)


class Replicas:
    """The replicas of an application, and the threads that watch them and the primary.

    Safe for threads. A forked process starts anew.
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
        """Begin to watch, unless this process does so already."""
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
        """A replica to read from; if possible one that is known to have replayed ``after``."""
        self.start()
        readable = [each for each in self.all if each.state is State.OK]
        random.shuffle(readable)
        return max(readable, key=lambda each: each.position >= after, default=None)

    def floor(self) -> int | None:
        """The position that a replica must have replayed; None if the primary's is not known.

        The primary had written it at most ``max_lag`` seconds ago.
        """
        oldest = time.monotonic() - self.max_lag
        known = (position for moment, position in list(self._written) if moment >= oldest)
        return next(known, None)

    def look_at_primary(self) -> None:
        """Note how far the primary has written; nothing if it does not answer."""
        now = time.monotonic()
        try:
            with transaction(Transaction(begin="")):
                self._written.append((now, GET_WRITTEN.scalar()))
        except FAULTS as fault:
            log.info("primary_not_watched", extra={"reason": type(fault).__name__})

    def look_at(self, replica: Replica) -> None:
        """Note whether the replica can be read, and how far it is."""
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
        """How long ago the primary had written no more than this; at most five minutes."""
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
