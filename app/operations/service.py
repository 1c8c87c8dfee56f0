"""Readiness, and whether the database has the migrations."""

from __future__ import annotations

from functools import cache
from hmac import compare_digest
from pathlib import Path

from flask import current_app
from psycopg2.errors import UndefinedTable
from redis.exceptions import RedisError

from app.config import current_config
from app.core.db.replicas.reading import EXTENSION
from app.core.db.replicas.watch import Replicas, State
from app.core.db.statements import Statement
from app.core.db.transactions import DATABASE_FAULTS, current_transaction
from app.core.errors import Unauthenticated
from app.core.jobs.queues import connection

FIND_MIGRATION = Statement("operations.find_migration", "SELECT version_num FROM alembic_version")
# How many connections the role has open, how many others than this one are in use, and how many
# PostgreSQL allows to all roles together, except superusers. PostgreSQL is asked, because only it
# knows the connections of jobs and of killed processes.
CONNECTIONS = Statement(
    "operations.connections",
    "SELECT count(*) AS open,"
    " count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use,"
    " current_setting('max_connections')::int"
    " - current_setting('superuser_reserved_connections')::int AS allowed"
    " FROM pg_stat_activity"
    " WHERE usename = current_user AND datname = current_database()",
)


def readiness() -> dict[str, str]:
    """``ok`` or a short description of the fault, for each check.

    Requests need the database and the migrations. Without Redis, or without some of the replicas,
    they are answered: ``degraded``.
    """
    return {**_database(), **_replicas(), "redis": _redis()}


def _database() -> dict[str, str]:
    try:
        version = FIND_MIGRATION.scalar()
    except UndefinedTable:
        current_transaction().close()
        return {"database": "ok", "migrations": "none applied"}
    except DATABASE_FAULTS:
        current_transaction().close()  # the commit at the request's end then sends nothing
        return {"database": "unavailable", "migrations": "unknown"}
    return {"database": "ok", "migrations": "ok" if is_migrated(version) else f"at {version}"}


def _replicas() -> dict[str, str]:
    """Whether this process reads from all standbys; empty where there are no replicas."""
    found = replicas()
    if found is None:
        return {}
    found.start()
    is_degraded = any(each.state in (State.LAGGING, State.UNAVAILABLE) for each in found.all)
    return {"replicas": "degraded" if is_degraded else "ok"}


def replicas() -> Replicas | None:
    """The replicas, as this process sees them; None where there are none."""
    return current_app.extensions.get(EXTENSION)


def _redis() -> str:
    try:
        connection().ping()
    except RedisError:
        return "degraded"
    return "ok"


def check_metrics_token(given: str) -> None:
    """Raise Unauthenticated where ``METRICS_TOKEN`` is set and ``given`` is another token."""
    token = current_config().metrics_token
    if token and not compare_digest(token.encode(), given.encode("latin-1", "replace")):
        raise Unauthenticated(reason="metrics_token_invalid")


def is_migrated(version: str | None) -> bool:
    """Whether a database at ``version`` has all migrations of this release.

    Migrations only add, so those of a later release do no harm: this one still runs while the
    next is started, and again if the next is taken back.
    """
    newest = newest_migration()
    return version is not None and newest is not None and version >= newest  # they are numbered


@cache
def newest_migration() -> str | None:
    """The revision of the newest migration file, which its name begins with; None without a file."""
    versions = Path(current_app.root_path).parent / "migrations" / "versions"
    names = [path.name for path in versions.glob("[0-9]*_*.py")]
    return max(names).partition("_")[0] if names else None
