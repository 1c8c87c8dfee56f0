"""The settings of SQLAlchemy's engines, and the set-up of each new connection.

There is one engine for the primary, and one for each replica. An engine owns a pool of connections.
They are in psycopg2's autocommit mode, because :mod:`app.core.db.transactions` sends BEGIN and
COMMIT itself.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

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

GRACE = 2.0  # seconds beyond statement_timeout after which a server counts as frozen
SLOW = 1.0  # seconds after which a failed connection attempt counts as "no answer"
PAUSE = 1.0  # seconds during which only one thread tries a server that did not answer
LISTED = ("host", "hostaddr", "port")  # libpq's parameters with a value for each host
# A machine that is gone does not close its connections; this notices it after about five seconds.
DEAD_MACHINE = {
    "tcp_user_timeout": 5_000,  # milliseconds
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}
BYTES = new_type((17,), "BYTES", lambda value, _: value and bytes.fromhex(str(value)[2:]))
"""A ``bytea`` as bytes, which psycopg2 returns as a memoryview."""


class Limits(NamedTuple):
    """How many seconds a server may take."""

    connect: float
    statement: float  # then the server cancels it
    answer: float  # then the client closes the connection

    @classmethod
    def of_primary(cls, config: Config) -> Limits:
        """The configured ones."""
        timeout = config.db_statement_timeout
        return cls(config.db_connect_timeout, timeout, timeout + GRACE)

    @classmethod
    def of_replicas(cls, config: Config) -> Limits:
        """Short ones, because the primary then answers."""
        return cls(1.0, min(2.0, config.db_statement_timeout), 2.5)


def engine_options(config: Config, limits: Limits) -> dict[str, Any]:
    """The options of one engine, as ``SQLALCHEMY_ENGINE_OPTIONS`` and ``SQLALCHEMY_BINDS`` have them.

    Where there are replicas, a thread of each process watches each server; it needs a connection.
    """
    timeout = int(limits.statement * 1000)
    return {
        "isolation_level": "AUTOCOMMIT",
        "pool_size": config.db_pool_size + bool(config.database_replica_urls),
        "max_overflow": 0,
        "pool_timeout": config.db_pool_timeout,
        "pool_reset_on_return": None,  # a transaction ends before its connection goes back
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
    """psycopg2's connection, with a limit on how long it waits for the server, or with None."""

    def __init__(self, dsn: str, *args: Any, seconds: float, **options: Any):
        self.seconds: float | None = seconds
        super().__init__(dsn, *args, **options)


def configure_engine(engine: Engine, config: Config, limits: Limits) -> None:
    """Set up each connection of the pool, and limit how long it waits for PostgreSQL.

    A frozen server cannot apply ``statement_timeout`` itself, so the client stops waiting
    after ``limits.answer`` seconds.
    """
    set_wait_callback(_wait)  # psycopg2 has one for the whole process
    event.listen(engine, "do_connect", Connector(limits.connect, limits.answer))

    @event.listens_for(engine, "connect")
    def begin(opened: connection, record: ConnectionPoolEntry) -> None:
        if config.db_prepare:
            record.info[PREPARED] = PreparedStatements()
        register_type(BYTES, opened)
        if opened.info.parameter_status("TimeZone") != "UTC":  # a pooler ignores start-up options
            with opened.cursor() as cursor:
                cursor.execute("SET TIME ZONE 'UTC'")

    @event.listens_for(engine, "checkout")
    def check(opened: connection, *_: object) -> None:
        """Replace a connection that was returned with an open transaction."""
        if opened.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            raise DisconnectionError


def limit_connecting(engine: Engine, config: Config) -> None:
    """Let an engine outside the pool try each host of its URL for ``DB_CONNECT_TIMEOUT``.

    Its statements, such as those of the migrations, are not limited.
    """
    event.listen(engine, "do_connect", Connector(config.db_connect_timeout, None))


@contextmanager
def waiting_at_most(seconds: float, opened: connection) -> Iterator[None]:
    """Limit how long a pool's connection waits for each answer in the block."""
    limited = cast("PooledConnection", opened)
    usual, limited.seconds = limited.seconds, seconds
    try:
        yield
    finally:
        limited.seconds = usual


class Connector:
    """Opens an engine's connections, to the first host of its URL that accepts one.

    Each host is tried for ``seconds``. libpq itself would wait for a host that does not answer,
    because psycopg2 has a wait callback. The host that accepted the last connection is tried first.
    A connection then waits ``answer`` seconds for each answer; None is without a limit.
    """

    def __init__(self, seconds: float, answer: float | None) -> None:
        self._factory = partial(PooledConnection, seconds=seconds)
        self._answer = answer
        self._first = 0
        self._breaker = Breaker(PAUSE)

    def __call__(
        self, dialect: Dialect, _: object, arguments: list[str], options: dict[str, Any]
    ) -> PooledConnection:
        """SQLAlchemy's event ``do_connect``; OperationalError with the faults of all hosts."""
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
    """The parameters that differ between the hosts, for each of them."""
    listed = {name: str(options[name]).split(",") for name in LISTED if name in options}
    number = max(map(len, listed.values()), default=1)
    return [
        {name: values[place % len(values)] for name, values in listed.items()}
        for place in range(number)
    ]


def _wait(opened: connection) -> None:
    """Wait as psycopg2's ``wait_select`` does, but raise OperationalError after the time limit.

    psycopg2 closes a connection whose wait callback raises. It opens connections by this callback
    too, and then ignores ``connect_timeout``.
    """
    seconds = opened.seconds if isinstance(opened, PooledConnection) else None
    while (state := opened.poll()) != POLL_OK:
        socket = select.poll()
        socket.register(opened.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        if not socket.poll(None if seconds is None else seconds * 1000):
            raise psycopg2.OperationalError(f"PostgreSQL did not answer within {seconds} s.")
