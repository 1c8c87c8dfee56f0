"""Connections for export and erasure: each is new, and sees the rows of every tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, pool, text

from app.config import current_config
from app.core.db.engine import limit_connecting
from app.core.db.tenancy import SET_SCOPE
from app.core.errors import AppError
from app.core.json_text import dumps_text

LIMIT_LOCKS = text("SET LOCAL lock_timeout = '10s'")
MAY_UPDATE_AUDIT = text("SELECT has_table_privilege('audit_events', 'UPDATE')")


class NotOwner(AppError):
    """MIGRATION_DATABASE_URL does not connect as the owner of the tables."""


@contextmanager
def snapshot() -> Iterator[Connection]:
    """A read-only transaction that sees all rows as they are at one moment."""
    url = current_config().database_url
    with _connection(url, isolation_level="REPEATABLE READ") as connection:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        yield connection


@contextmanager
def application() -> Iterator[Connection]:
    """A transaction of the application's role. It waits at most ten seconds for a lock."""
    with _connection(current_config().database_url) as connection:
        connection.execute(LIMIT_LOCKS)
        yield connection


@contextmanager
def owner() -> Iterator[Connection]:
    """A transaction of the owner of the tables, the only role that may update the audit trail.

    It waits at most ten seconds for a lock. Raises :class:`NotOwner`.
    """
    with _connection(current_config().migration_database_url) as connection:
        if not connection.scalar(MAY_UPDATE_AUDIT):
            raise NotOwner("Name the owner of the tables in MIGRATION_DATABASE_URL.")
        connection.execute(LIMIT_LOCKS)
        yield connection


@contextmanager
def _connection(url: str, **options: Any) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=pool.NullPool, json_serializer=dumps_text, **options)
    limit_connecting(engine, current_config())
    with engine.begin() as connection:
        connection.execute(SET_SCOPE.clause, {"tenant_id": "", "platform": "on"})
        yield connection
