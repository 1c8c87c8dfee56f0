"""Connections of their own, that see every tenant: a snapshot to export, the owner's to erase."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import current_app
from sqlalchemy import Connection, create_engine, pool, text

from app.config import Config
from app.core.db.tenancy import PLATFORM
from app.core.errors import AppError
from app.core.json_text import dumps_text

LOCK_SECONDS = 10
MAY_REWRITE = text("SELECT has_table_privilege('audit_events', 'UPDATE')")


class NotOwner(AppError):
    """MIGRATION_DATABASE_URL does not connect as the owner of the tables."""


@contextmanager
def snapshot() -> Iterator[Connection]:
    """Every tenant's rows as they are at one moment, read only."""
    config: Config = current_app.extensions["config"]
    with _session(config.database_url, isolation_level="REPEATABLE READ") as session:
        session.execute(text("SET TRANSACTION READ ONLY"))
        yield session


@contextmanager
def owner() -> Iterator[Connection]:
    """A transaction of the tables' owner, who alone may rewrite the audit trail.

    It waits for a lock for ten seconds at most. Raises :class:`NotOwner`.
    """
    config: Config = current_app.extensions["config"]
    with _session(config.migration_database_url) as session:
        if not session.scalar(MAY_REWRITE):
            raise NotOwner("Name the owner of the tables in MIGRATION_DATABASE_URL.")
        session.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        yield session


@contextmanager
def _session(url: str, **options: Any) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=pool.NullPool, json_serializer=dumps_text, **options)
    with engine.begin() as session:
        session.exec_driver_sql(PLATFORM.settings)
        yield session
