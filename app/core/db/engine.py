"""The settings of SQLAlchemy's engines, and the set-up of each new connection.

There is one engine for the primary, and one for each replica. An engine owns a pool of connections.
The connections use psycopg2's autocommit mode, because :mod:`app.core.db.transactions` itself sends
BEGIN and COMMIT.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import psycopg2
from psycopg2.extensions import (
    POLL_OK,
    POLL_READ,
    TRANSACTION_STATUS_IDLE,
    connection,
    new_type,
    register_type,
    set_wait_callback,
)
from sqlalchemy import Dialect, Engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from app.config import Config
from app.core import json_text
from app.core.circuit_breaker import Breaker
from app.core.db.prepared import PREPARED, PreparedStatements

SLOW = 1.0  # seconds; an attempt to connect that fails later than this opens the breaker
PAUSE = 1.0  # seconds of the breaker
LISTED = ("host", "hostaddr", "port")  # libpq's parameters that list a value for each host
# A machine that has failed does not close its connections. These settings detect it in about 5 s.
DEAD_MACHINE = {
    "tcp_user_timeout": 5_000,  # milliseconds
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}
BYTES = new_type((17,), "BYTES", lambda value, _: value and bytes.fromhex(str(value)[2:]))
"""Reads ``bytea`` as bytes; psycopg2 itself would return a memoryview."""


def engine_options(config: Config, seconds: float) -> dict[str, Any]:
    """The options of one engine, for ``SQLALCHEMY_ENGINE_OPTIONS`` and ``SQLALCHEMY_BINDS``.

    PostgreSQL cancels a statement that takes longer than ``seconds``.
    With replicas, each process has a thread that watches this server. It needs one more connection.
    """
    timeout = int(seconds * 1000)
    return {
        "isolation_level": "AUTOCOMMIT",
        "pool_size": config.db_pool_size + bool(config.database_replica_urls),
        "max_overflow": 0,
        "pool_timeout": config.db_pool_timeout,
        "pool_reset_on_return": None,  # a transaction ends before its connection is returned
        "json_serializer": json_text.dumps_text,
        "json_deserializer": json_text.loads,
        "connect_args": {
            **DEAD_MACHINE,
            "application_name": "controlplane",
            "options": f"-c statement_timeout={timeout} -c lock_timeout={timeout}"
            f" -c idle_in_transaction_session_timeout={2 * timeout} -c timezone=UTC",
        },
    }


class PooledConnection(connection):
    """psycopg2's connection. It waits ``seconds`` for each answer; None means unlimited."""

    def __init__(self, dsn: str, *args: Any, seconds: float, **options: Any):
        self.seconds: float | None = seconds
        super().__init__(dsn, *args, **options)


def configure_engine(engine: Engine, config: Config, connector: Connector) -> None:
    """Open the connections of the pool by ``connector``, and set up each of them."""
    set_wait_callback(_wait)  # psycopg2 has one callback per process
    event.listen(engine, "do_connect", connector)

    @event.listens_for(engine, "connect")
    def begin(opened: connection, record: ConnectionPoolEntry) -> None:
        register_type(BYTES, opened)
        with opened.cursor() as cursor:
            # A pooler ignores start-up options, and the process id that it names is not a server's.
            cursor.execute("SET TIME ZONE 'UTC'; SELECT pg_backend_pid()")
            is_direct = cursor.fetchone() == (opened.get_backend_pid(),)
        if config.db_prepare and is_direct:
            record.info[PREPARED] = PreparedStatements()

    @event.listens_for(engine, "checkout")
    def check(opened: connection, *_: object) -> None:
        """Replace a pooled connection if its last user left a transaction open."""
        if opened.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            raise DisconnectionError


def limit_connecting(engine: Engine, config: Config) -> None:
    """Limit connecting to ``DB_CONNECT_TIMEOUT`` per host, for an engine that is not the service's.

    The time of its statements, such as those of migrations, is not limited.
    """
    event.listen(engine, "do_connect", Connector(config.db_connect_timeout, None))


@contextmanager
def waiting_at_most(seconds: float, opened: connection) -> Iterator[None]:
    """In the block, let a connection of a pool wait at most ``seconds`` for each answer."""
    limited = cast("PooledConnection", opened)
    usual, limited.seconds = limited.seconds, seconds
    try:
        yield
    finally:
        limited.seconds = usual


class Connector:
    """Opens an engine's connections, each to the first host of the URL that accepts it.

    It tries each host for ``seconds``, and begins with the host that accepted the last connection.
    libpq's ``connect_timeout`` cannot limit this time, because psycopg2 has a wait callback.
    An open connection waits ``answer`` seconds for each answer, because a frozen server cannot apply
    ``statement_timeout`` itself; None means unlimited.
    """

    def __init__(self, seconds: float, answer: float | None) -> None:
        self._factory = partial(PooledConnection, seconds=seconds)
        self._answer = answer
        self._first = 0
        self._breaker = Breaker(PAUSE)

    def __call__(
        self, dialect: Dialect, _: object, arguments: list[str], options: dict[str, Any]
    ) -> PooledConnection:
        """Handle SQLAlchemy's ``do_connect``. OperationalError lists the errors of all hosts."""
        if not self._breaker.permits():
            raise psycopg2.OperationalError("PostgreSQL did not answer a moment ago.")
        started, faults = time.monotonic(), []
        hosts = _each_host(options)
        for place in (*range(self._first, len(hosts)), *range(self._first)):
            own = {**options, **hosts[place], "connection_factory": self._factory}
            try:
                opened = cast("PooledConnection", dialect.connect(*arguments, **own))
            except psycopg2.OperationalError as fault:
                faults.append(str(fault).strip())
                continue
            self._first = place
            self._breaker.note_success()
            opened.seconds = self._answer
            return opened
        if time.monotonic() - started > SLOW:
            self._breaker.note_failure()
        raise psycopg2.OperationalError("; ".join(faults))


def _each_host(options: Mapping[str, object]) -> list[dict[str, str]]:
    """For each host of the URL, the parameters that select this host."""
    listed = {name: str(options[name]).split(",") for name in LISTED if name in options}
    number = max(map(len, listed.values()), default=1)
    return [
        {name: values[place % len(values)] for name, values in listed.items()}
        for place in range(number)
    ]


def _wait(opened: connection) -> None:
    """Wait as psycopg2's ``wait_select`` does, but raise OperationalError after the time limit.

    If a wait callback raises, psycopg2 closes the connection. psycopg2 also uses the callback to
    open connections, and then ignores ``connect_timeout``.
    """
    seconds = opened.seconds if isinstance(opened, PooledConnection) else None
    while (state := opened.poll()) != POLL_OK:
        socket = select.poll()
        socket.register(opened.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        if not socket.poll(None if seconds is None else seconds * 1000):
            raise psycopg2.OperationalError(f"PostgreSQL did not answer within {seconds} s.")
