"""Readiness: the database, Redis and the migrations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import psycopg2
from flask import current_app
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.core.jobs.queues import connection

DATABASE_FAULTS = (psycopg2.Error, PoolTimeout)
REVISION = re.compile(r'^revision = "(.+)"$', re.MULTILINE)
FIND_MIGRATION = Statement(
    "operations.find_migration", text("SELECT version_num FROM alembic_version")
)
# One SELECT per state, so that each reads only the partial index of its state.
INBOX_DEPTH = Statement(
    "operations.inbox_depth",
    text(
        " UNION ALL ".join(
            "SELECT status, count(*) AS events,"  # noqa: S608
            " extract(epoch FROM now() - min(created_at))::float AS oldest_seconds "
            f"FROM webhook_events WHERE status = '{state}' GROUP BY status"
            for state in ("pending", "failed")
        )
    ),
)


def readiness() -> dict[str, str]:
    """``ok`` or a short description of the fault, for each check.

    Requests need the database and the migrations. Without Redis they are answered: ``degraded``.
    """
    return {**_database(), "redis": _redis()}


def _database() -> dict[str, str]:
    try:
        version = FIND_MIGRATION.scalar()
    except DATABASE_FAULTS:
        current_transaction().close()  # the commit at the request's end then sends nothing
        return {"database": "unavailable", "migrations": "unknown"}
    current = version == newest_migration()
    return {"database": "ok", "migrations": "ok" if current else f"at {version}"}


def _redis() -> str:
    try:
        connection().ping()
    except RedisError:
        return "degraded"
    return "ok"


def inbox_depth() -> Sequence[tuple[str, int, float]]:
    """State, number of events and age of the oldest event in seconds, for pending and failed.

    A state without events is absent.
    """
    return INBOX_DEPTH.all()


@cache
def newest_migration() -> str | None:
    """The revision of the newest migration file; None if there is no file."""
    versions = Path(current_app.root_path).parent / "migrations" / "versions"
    newest = max(versions.glob("[0-9]*_*.py"), default=None)  # they are numbered
    found = newest and REVISION.search(newest.read_text())
    return found[1] if found else None
