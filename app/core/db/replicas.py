"""Reading from replicas: PostgreSQL's standbys, which replay what the primary writes.

A replica is read only if it has replayed everything that the primary had written
``REPLICA_MAX_LAG`` seconds ago, and what the request asks for. Nothing depends on a replica: a read
that fails there is repeated on the primary. So is one whose answer is an error: that a row is
missing is never the answer of a replica that is behind.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import psycopg2
from flask import Flask
from sqlalchemy import bindparam, select

from app.config import Config
from app.core.db import tenancy, transactions
from app.core.db.engine import Limits, configure_engine, engine_options, waiting_at_most
from app.core.db.replica_watch import (
    ANSWER,
    FAULTS,
    GET_STATE,
    STATE_OF_REPLICA,
    Replica,
    State,
    Watch,
)
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction, current_transaction, transaction
from app.core.errors import AppError
from app.core.observability.metrics import count_read
from app.extensions import db

T = TypeVar("T")
log = logging.getLogger(__name__)

EXTENSION = "replicas"
PRIMARY = "primary"  # among the names of the replicas, in the metrics
WAIT = 0.1  # seconds that a request waits for a replica to replay what it asks for
PAUSE = 0.005  # seconds between two questions while it waits
ENTER = Statement(
    "replicas.enter",
    select(*tenancy.settings(bindparam("tenant_id"), bindparam("platform")), *STATE_OF_REPLICA),
)


class NotReadable(Exception):
    """The replica is no standby, or has not replayed enough; ``state`` is its new one, if any."""

    def __init__(self, reason: str, state: State | None = None) -> None:
        super().__init__(reason)
        self.state = state


class Replicas:
    """The replicas of an application. Safe for threads."""

    def __init__(self, app: Flask, config: Config) -> None:
        self.watch = Watch(app, config.database_replica_urls, config.replica_max_lag)
        self._places = threading.BoundedSemaphore(max(1, config.db_pool_size // 4))

    @property
    def all(self) -> Sequence[Replica]:
        """The replicas in the order of ``DATABASE_REPLICA_URLS``."""
        return self.watch.replicas

    def choose(self, after: int = 0) -> Replica | None:
        """A replica to read from; if possible one that is known to have replayed ``after``."""
        self.watch.start()
        readable = [each for each in self.all if each.state is State.OK]
        random.shuffle(readable)
        return max(readable, key=lambda each: each.position >= after, default=None)

    def read(
        self, replica: Replica, work: Callable[[], T], facts: Mapping[str, Any], *, after: int = 0
    ) -> T:
        """``work()`` on the replica, or on the primary where that fails, in the scope of ``facts``.

        ``facts`` are those of the transaction that has authenticated the request. The replica must
        have replayed the position ``after``.
        """
        current = Transaction(replica.bind, "BEGIN READ ONLY", facts=dict(facts))
        try:
            with transaction(current):
                self._enter(after)
                found = work()
        except AppError:
            pass  # the primary answers, which may know better
        except (*FAULTS, NotReadable) as fault:
            _note_failure(replica, current, fault)
        else:
            count_read(replica.name)
            return found
        found = transactions.run(partial(_with_facts, work, facts))
        count_read(PRIMARY)
        return found

    def _enter(self, after: int) -> None:
        """Set the scope, and check the replica in the same statement; raises NotReadable."""
        scope = tenancy.current_scope()
        with waiting_at_most(ANSWER, current_transaction().cursor.connection):
            found = ENTER.first(**tenancy.values_of(scope))
        tenancy.note(scope, found.server_process_id)
        if not found.is_standby:
            raise NotReadable("it is no standby", State.PRIMARY)
        floor = self.watch.floor()
        if floor is None or found.position < floor:
            raise NotReadable("it is too far behind", State.LAGGING)
        if found.position < after:
            self._wait_for(after)

    def _wait_for(self, after: int) -> None:
        """Wait, at most :data:`WAIT`; a quarter of the threads may wait, and at least one."""
        if not self._places.acquire(blocking=False):
            raise NotReadable("too many requests wait")
        try:
            ends = time.monotonic() + WAIT
            while GET_STATE.first().position < after:
                if time.monotonic() > ends:
                    raise NotReadable(f"it did not replay enough within {WAIT} s")
                time.sleep(PAUSE)
        finally:
            self._places.release()


def open_databases(app: Flask, config: Config) -> None:
    """Create the engines of the primary and of the replicas, and the :class:`Replicas`, if any."""
    primary, replicas = Limits.of_primary(config), Limits.of_replicas(config)
    app.config["SQLALCHEMY_DATABASE_URI"] = config.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options(config, primary)
    if config.database_replica_urls:
        found = app.extensions[EXTENSION] = Replicas(app, config)
        options = engine_options(config, replicas)
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


def _note_failure(replica: Replica, current: Transaction, fault: Exception) -> None:
    """Log it; a replica that has not answered, or is none, is read again once it is ``ok``."""
    reason = str(fault).partition("\n")[0]
    log.info("replica_not_read", extra={"replica": replica.name, "reason": reason})
    if isinstance(fault, NotReadable):
        if fault.state is not None:
            replica.note(fault.state)
    elif current.is_lost or (isinstance(fault, psycopg2.Error) and fault.pgcode is None):
        replica.note(State.UNAVAILABLE)
