"""Readiness: the database, Redis and the migrations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from flask import current_app
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import transactions
from app.core.jobs.queues import connection
from app.extensions import db

REVISION = re.compile(r'^revision = "(.+)"$', re.MULTILINE)
# One part for each state, so that each reads the index of its state and nothing else.
INBOX_DEPTH = text(
    " UNION ALL ".join(
        "SELECT status, count(*), extract(epoch FROM now() - min(created_at))::float "  # noqa: S608
        f"FROM webhook_events WHERE status = '{state}' GROUP BY status"
        for state in ("pending", "failed")
    )
)


def readiness() -> dict[str, str]:
    """``ok`` or a few words of fault for each thing that requests and jobs need."""
    return {**_database(), "redis": _redis()}


def _database() -> dict[str, str]:
    try:
        version = db.session.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except SQLAlchemyError:
        transactions.discard()
        return {"database": "unavailable", "migrations": "unknown"}
    current = version == newest_migration()
    return {"database": "ok", "migrations": "ok" if current else f"at {version}"}


def _redis() -> str:
    try:
        connection().ping()
    except RedisError:
        return "unavailable"
    return "ok"


def inbox_depth() -> Sequence[tuple[str, int, float]]:
    """State, number of events and age of the oldest in seconds, of the states that need attention."""
    return db.session.execute(INBOX_DEPTH).tuples().all()


@cache
def newest_migration() -> str | None:
    """The revision that this code was written for."""
    versions = Path(current_app.root_path).parent / "migrations" / "versions"
    newest = max(versions.glob("[0-9]*_*.py"), default=None)  # they are numbered
    found = newest and REVISION.search(newest.read_text())
    return found[1] if found else None
