"""Reading from replicas: PostgreSQL's standbys, which replay what the primary writes.

A replica is read only if it has replayed everything that the primary had written
``REPLICA_MAX_LAG`` seconds ago. Nothing depends on a replica: a read that fails there is repeated
on the primary. So is one whose answer is an error, because the primary may know better.

A client reads what it has written: the answer of each change has an ``X-Consistency`` header, which
is the primary's WAL position after the commit. A request that sends it back reads from a replica
that has replayed that far, or from the primary. Without replicas there is no such header, and one
that is sent is ignored.
"""

from __future__ import annotations

import random
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Flask, Request, Response, current_app
from sqlalchemy import bindparam, select

from app.config import Config
from app.core.db import tenancy
from app.core.db.engine import Limits, configure_engine, engine_options, waiting_at_most
from app.core.db.replicas.watch import (
    ANSWER,
    GET_STATE,
    STATE_OF_REPLICA,
    NotReadable,
    Replica,
    State,
    Watch,
)
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction
from app.core.errors import Invalid, value_error
from app.core.observability.metrics import READS
from app.extensions import db

if TYPE_CHECKING:
    from app.core.http.endpoint import Endpoint

EXTENSION = "replicas"
HEADER = "X-Consistency"
LOCATION = ("header", HEADER.lower())
POSITION = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
PRIMARY = "primary"  # among the names of the replicas, in the metrics
WAIT = 0.1  # seconds that a request waits for a replica to replay what it asks for
PAUSE = 0.005  # seconds between two questions while it waits
ENTER = Statement(
    "replicas.enter",
    select(*tenancy.settings(bindparam("tenant_id"), bindparam("platform")), *STATE_OF_REPLICA),
)


class Replicas:
    """The replicas of an application. Safe for threads."""

    def __init__(self, app: Flask, config: Config) -> None:
        self.watch = Watch(app, config.database_replica_urls, config.replica_max_lag)
        self._places = threading.BoundedSemaphore(max(1, config.db_pool_size // 4))

    @property
    def all(self) -> list[Replica]:
        """The replicas in the order of ``DATABASE_REPLICA_URLS``."""
        return self.watch.replicas

    def choose(self, after: int = 0) -> Replica | None:
        """A replica to read from; if possible one that is known to have replayed ``after``."""
        self.watch.start()
        readable = [each for each in self.all if each.state is State.OK]
        random.shuffle(readable)
        return max(readable, key=lambda each: each.position >= after, default=None)

    def enter(self, current: Transaction, replica: Replica, after: int) -> None:
        """Switch to ``replica``, in the same scope; NotReadable if it is too far behind.

        One statement sets the scope and checks the replica, which must have replayed ``after``.
        """
        scope = tenancy.current_scope()
        current.read_from(replica)
        with waiting_at_most(ANSWER, current.cursor.connection):
            found = ENTER.one(**tenancy.values_of(scope))
        tenancy.note(scope, found.server_process_id)
        if not found.is_standby:
            raise NotReadable("it is not a standby", State.PRIMARY)
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
            while GET_STATE.one().position < after:
                if time.monotonic() > ends:
                    raise NotReadable(f"it did not replay enough within {WAIT} s")
                time.sleep(PAUSE)
        finally:
            self._places.release()


class Route:
    """Which server a request uses. This one: the primary, where no replicas are configured."""

    def open(self, attempt: int) -> Transaction:
        """The transaction of an attempt, which begins at 1."""
        return Transaction()

    def enter(self, current: Transaction) -> None:
        """Switch to the server from which the request reads. Call it after the authentication."""

    def finish(self, current: Transaction, response: Response) -> None:
        """Add the headers that depend on the commit, and count the read."""


class Change(Route):
    """A change. Its answer names the WAL position that a later read needs."""

    def open(self, attempt: int) -> Transaction:
        return Transaction(tells_position=True)

    def finish(self, current: Transaction, response: Response) -> None:
        if current.position is not None:
            response.headers[HEADER] = shown(current.position)


@dataclass
class Read(Route):
    """A read. The first attempt uses ``replica``, if there is one; further attempts the primary."""

    replicas: Replicas
    replica: Replica | None
    token: str | None
    after: int | None  # None for a malformed token

    def open(self, attempt: int) -> Transaction:
        # The replica gets a transaction of its own, so the primary needs no BEGIN.
        return Transaction(begin="" if self.replica is not None and attempt == 1 else "BEGIN")

    def enter(self, current: Transaction) -> None:
        """Raises Invalid for a malformed token, and NotReadable."""
        if self.after is None:
            raise Invalid(
                value_error(LOCATION, "this is not a token that an answer had", self.token)
            )
        if self.replica is not None and not current.begin:
            self.replicas.enter(current, self.replica, self.after)

    def finish(self, current: Transaction, response: Response) -> None:
        READS.labels(self.replica.name if self.replica and current.standby else PRIMARY).inc()


NO_REPLICAS = Route()
CHANGE = Change()


def route(endpoint: Endpoint, request: Request) -> Route:
    """Which server a request to this endpoint uses."""
    replicas: Replicas | None = current_app.extensions.get(EXTENSION)
    if replicas is None or not endpoint.is_guarded or endpoint.reads_primary:
        return NO_REPLICAS
    if not endpoint.reads(request):
        return CHANGE
    token = request.headers.get(HEADER)
    after = position_of(token)
    return Read(replicas, None if after is None else replicas.choose(after), token, after)


def shown(position: int) -> str:
    """A WAL position as PostgreSQL shows it: two hexadecimal numbers."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def position_of(token: str | None) -> int | None:
    """The position of a token, 0 without one; None for a malformed one."""
    if token is None:
        return 0
    found = POSITION.fullmatch(token)
    return None if found is None else int(found[1], 16) << 32 | int(found[2], 16)


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
