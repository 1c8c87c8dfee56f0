"""Reading from replicas: PostgreSQL's standbys, which replay the WAL of the primary.

A replica is read if it has replayed all WAL that the primary had written ``REPLICA_MAX_LAG``
seconds ago. No read depends on a replica: a read that fails there is repeated on the primary. So is
a read whose answer is an error, because the primary may have newer rows.

A client can read its own changes. The answer to each change has an ``X-Consistency`` header: the
primary's WAL position after the commit. A request that sends this header is served by a replica
that has replayed to that position, or by the primary. Without replicas, answers do not have the
header, and a request's header is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Flask, Request, Response, current_app
from sqlalchemy import bindparam, select

from app.config import Config
from app.core.db import tenancy
from app.core.db.engine import Connector, configure_engine, engine_options, waiting_at_most
from app.core.db.replicas.watch import ANSWER, STATE_OF_REPLICA, NotReadable, Replica, Replicas
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction, on_commit
from app.core.errors import Invalid, value_error
from app.core.observability.metrics import READS
from app.extensions import db

if TYPE_CHECKING:
    from app.core.http.endpoint import Endpoint

EXTENSION = "replicas"
HEADER = "X-Consistency"
READS_PRIMARY = "controlplane.reads_primary"
"""A key of the WSGI environment that commands set: the request reads from the primary."""
LOCATION = ("header", HEADER.lower())
POSITION = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
GRACE = 2.0  # seconds; a primary that exceeds statement_timeout by more counts as frozen
PRIMARY = "primary"  # the primary's name in the metrics
ENTER = Statement(
    "replicas.enter",
    select(*tenancy.settings(bindparam("tenant_id"), bindparam("platform")), *STATE_OF_REPLICA),
)


@dataclass(frozen=True)
class Route:
    """The server that a request uses.

    A read's first attempt uses ``replica``, unless it is None. Further attempts use the primary.
    """

    is_read: bool = False  # and a replica may answer
    tells_position: bool = False  # a change, whose answer has a token
    token: str | None = None
    position: int | None = 0  # what the replica must have replayed; None for a malformed token
    replica: Replica | None = None

    def open(self, attempt: int) -> Transaction:
        """The transaction of an attempt; the first attempt has the number 1."""
        # A read begins its transaction on the replica, so it sends no BEGIN to the primary.
        begin = "" if self.replica is not None and attempt == 1 else "BEGIN"
        return Transaction(begin=begin, tells_position=self.tells_position)

    def enter(self, current: Transaction) -> None:
        """Switch to the replica if the route has a replica. Call it after the authentication.

        One statement enters the same scope there, and reads the replica's position. Raises Invalid
        for a malformed token, and NotReadable if the replica cannot serve the read.
        """
        if self.position is None:
            reason = "this is not a token that an answer had"
            raise Invalid(value_error(LOCATION, reason, self.token))
        if self.replica is None or current.begin:
            return
        scope = tenancy.current_scope()
        current.read_from(self.replica)
        with waiting_at_most(ANSWER, current.cursor.connection):
            found = ENTER.one(**tenancy.values_of(scope))
        tenancy.note(scope)
        if not found.is_standby:
            raise NotReadable("it is not a standby")
        if found.position < self.position:
            raise NotReadable("it has not replayed enough")

    def finish(self, current: Transaction, response: Response) -> None:
        """After the commit, count a read, or add ``X-Consistency`` to the answer of a change."""
        if self.is_read:
            target = current.standby.name if current.standby else PRIMARY
            on_commit(READS.labels(target).inc)
        elif self.tells_position:
            on_commit(lambda: _add_token(current, response))


def route(endpoint: Endpoint, request: Request) -> Route:
    """The route of a request to this endpoint."""
    replicas: Replicas | None = current_app.extensions.get(EXTENSION)
    is_exact = not endpoint.is_guarded or endpoint.reads_primary or READS_PRIMARY in request.environ
    if replicas is None or is_exact:
        return Route()
    if not endpoint.reads(request):
        return Route(tells_position=True)
    replicas.start()
    token, replica, floor = request.headers.get(HEADER), None, replicas.floor()
    position = position_of(token)
    if position is not None and floor is not None:
        replica, position = replicas.choose(position), max(position, floor)
    return Route(is_read=True, token=token, position=position, replica=replica)


def position_of(token: str | None) -> int | None:
    """The WAL position in a token. 0 without a token, None for a malformed token."""
    if token is None:
        return 0
    found = POSITION.fullmatch(token)
    return None if found is None else int(found[1], 16) << 32 | int(found[2], 16)


def _add_token(current: Transaction, response: Response) -> None:
    if current.position is not None:
        response.headers[HEADER] = f"{current.position >> 32:X}/{current.position & 0xFFFFFFFF:X}"


def open_databases(app: Flask, config: Config) -> None:
    """Create the primary's engine. If replicas are configured, create theirs and Replicas too."""
    timeout = config.db_statement_timeout
    app.config["SQLALCHEMY_DATABASE_URI"] = config.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options(config, timeout)
    if config.database_replica_urls:
        found = app.extensions[EXTENSION] = Replicas(app, config)
        # Short limits, because a read that exceeds them is repeated on the primary.
        options = engine_options(config, min(2.0, timeout))
        app.config["SQLALCHEMY_BINDS"] = {
            each.bind: {"url": url, **options}
            for each, url in zip(found.all, config.database_replica_urls, strict=True)
        }
    db.init_app(app)
    with app.app_context():
        for bind, engine in db.engines.items():
            limits = (1.0, 2.5) if bind else (config.db_connect_timeout, timeout + GRACE)
            configure_engine(engine, config, Connector(*limits))
