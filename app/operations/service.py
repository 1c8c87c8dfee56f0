"""Readiness, and what `/metrics` tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hmac import compare_digest
from pathlib import Path
from typing import Any

import psycopg2
from flask import current_app
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.core.errors import Unauthenticated
from app.core.jobs.queues import connection

DATABASE_FAULTS = (psycopg2.Error, PoolTimeout)
EXPIRING_DAYS = 14
MOST_WAITING = 100_000  # events
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
# PostgreSQL is asked, because only it knows the connections of jobs and of killed processes.
CONNECTIONS = Statement(
    "operations.connections",
    text(
        "SELECT count(*) AS open,"
        " count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use"
        " FROM pg_stat_activity"
        " WHERE usename = current_user AND datname = current_database()"
    ),
)
EXPIRING_KEYS = Statement(
    "operations.expiring_keys",
    text(
        "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL"
        " AND expires_at BETWEEN now() AND now() + :days * interval '1 day'"
    ),
)
UNKNOWN_PLANS = Statement(
    "operations.unknown_plans",
    text(
        "SELECT plan_name, count(*) AS tenants FROM tenants WHERE plan_name <> :default_plan"
        " AND NOT EXISTS (SELECT FROM plan_presets WHERE name = plan_name)"
        " GROUP BY plan_name ORDER BY tenants DESC, plan_name"
    ),
)

EVENT_BACKLOG = Statement(
    "operations.event_backlog",
    text(
        "SELECT (SELECT last_position FROM event_feed) AS sequenced,"
        " count(*) AS waiting, extract(epoch FROM now() - min(created_at))::float AS seconds"
        " FROM (SELECT created_at FROM event_outbox ORDER BY number LIMIT :most) AS oldest"
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


def check_metrics_token(given: str) -> None:
    """Raise Unauthenticated where ``METRICS_TOKEN`` is set and ``given`` is another token."""
    token: str = current_app.extensions["config"].metrics_token
    if token and not compare_digest(token.encode(), given.encode("latin-1", "replace")):
        raise Unauthenticated(reason="metrics_token_invalid")


def inbox_depth() -> Sequence[tuple[str, int, float]]:
    """State, number of events and age of the oldest event in seconds, for pending and failed.

    A state without events is absent.
    """
    return INBOX_DEPTH.all()


def event_backlog() -> tuple[int, int, float]:
    """How many events have positions, how many wait for one, and seconds that the oldest waits.

    In the scope of the platform. At most :data:`MOST_WAITING` are counted.
    """
    found = EVENT_BACKLOG.first(most=MOST_WAITING)
    return found.sequenced or 0, found.waiting, max(found.seconds or 0.0, 0.0)


def connections() -> tuple[int, int]:
    """How many connections the role has open, and how many others than this one are not idle."""
    found = CONNECTIONS.first()
    return found.open, found.in_use


def expiring_keys() -> int:
    """How many API keys expire within :data:`EXPIRING_DAYS` days."""
    count: int = EXPIRING_KEYS.scalar(days=EXPIRING_DAYS)
    return count


def unknown_plans() -> Sequence[Any]:
    """``plan_name`` and number of ``tenants`` for each plan without a preset, most tenants first.

    The default plan needs no preset.
    """
    return UNKNOWN_PLANS.all(default_plan=current_app.extensions["config"].default_plan)


@cache
def newest_migration() -> str | None:
    """The revision of the newest migration file; None if there is no file."""
    versions = Path(current_app.root_path).parent / "migrations" / "versions"
    newest = max(versions.glob("[0-9]*_*.py"), default=None)  # they are numbered
    found = newest and REVISION.search(newest.read_text())
    return found[1] if found else None
