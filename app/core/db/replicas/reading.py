"""Reading from replicas: PostgreSQL's standbys, which replay the WAL of the primary.

A replica is read if it has replayed all WAL that the primary had written ``REPLICA_MAX_LAG``
seconds ago. No read depends on a replica: one that fails there is repeated on the primary. So is a
read whose answer is an error, because the primary may have newer rows.

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
from app.core.db.engine import Limits, configure_engine, engine_options, waiting_at_most
from app.core.db.replicas.watch import ANSWER, STATE_OF_REPLICA, NotReadable, Replica, Replicas
from app.core.db.statements import Statement
from app.core.db.transactions import Transaction
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
PRIMARY = "primary"  # the primary's name in the metrics
ENTER = Statement(
    "replicas.enter",
    select(*tenancy.settings(bindparam("tenant_id"), bindparam("platform")), *STATE_OF_REPLICA),
)


@dataclass(frozen=True)
class Route:
    """The server that a request uses. Without ``replicas`` it is the primary.

    A read's first attempt uses ``replica``, unless it is None. Further attempts use the primary.
    """

    replicas: Replicas | None = None
    is_read: bool = False
    token: str | None = None
    after: int | None = 0  # the WAL position in the token; None for a malformed token
    replica: Replica | None = None

    def open(self, attempt: int) -> Transaction:
        """The transaction of an attempt; the first attempt has the number 1."""
        # A read begins its transaction on the replica, so it sends no BEGIN to the primary.
        begin = "" if self.replica is not None and attempt == 1 else "BEGIN"
        tells_position = self.replicas is not None and not self.is_read
        return Transaction(begin=begin, tells_position=tells_position)

    def enter(self, current: Transaction) -> None:
        """Switch to the replica if the route has one. Call it after the authentication.

        Raises Invalid for a malformed token, and NotReadable if the replica cannot serve the read.
        """
        if self.after is None:
            reason = "this is not a token that an answer had"
            raise Invalid(value_error(LOCATION, reason, self.token))
        if self.replicas is not None and self.replica is not None and not current.begin:
            _enter(self.replica, current, self.after, self.replicas.floor())

    def finish(self, current: Transaction, response: Response) -> None:
        """Count a read. Add ``X-Consistency`` to the answer of a change."""
        if self.is_read:
            READS.labels(current.standby.name if current.standby else PRIMARY).inc()
        elif current.position is not None:
            response.headers[HEADER] = token_of(current.position)


PRIMARY_ONLY = Route()


def route(endpoint: Endpoint, request: Request) -> Route:
    """The route of a request to this endpoint."""
    replicas: Replicas | None = current_app.extensions.get(EXTENSION)
    if replicas is None or not endpoint.is_guarded or endpoint.reads_primary:
        return PRIMARY_ONLY
    if READS_PRIMARY in request.environ:
        return PRIMARY_ONLY
    if not endpoint.reads(request):
        return Route(replicas)
    token = request.headers.get(HEADER)
    after = position_of(token)
    replica = None if after is None else replicas.choose(after)
    return Route(replicas, is_read=True, token=token, after=after, replica=replica)


def _enter(replica: Replica, current: Transaction, after: int, floor: int | None) -> None:
    """Switch to ``replica`` in the same scope, by one statement that also reads its position.

    Raises NotReadable if it is no standby, or has not replayed both ``floor`` and ``after``.
    """
    scope = tenancy.current_scope()
    current.read_from(replica)
    with waiting_at_most(ANSWER, current.cursor.connection):
        found = ENTER.one(**tenancy.values_of(scope))
    tenancy.note(scope)
    if not found.is_standby:
        raise NotReadable("it is not a standby")
    if floor is None or found.position < floor:
        raise NotReadable("it is too far behind")
    if found.position < after:
        raise NotReadable("it has not replayed the change that the request names")


def token_of(position: int) -> str:
    """A WAL position as the token: PostgreSQL's notation, two hexadecimal numbers."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def position_of(token: str | None) -> int | None:
    """The WAL position in a token. 0 without a token, None for a malformed token."""
    if token is None:
        return 0
    found = POSITION.fullmatch(token)
    return None if found is None else int(found[1], 16) << 32 | int(found[2], 16)


def open_databases(app: Flask, config: Config) -> None:
    """Create the primary's engine. If replicas are configured, create theirs and Replicas too."""
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
