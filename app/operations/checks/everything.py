"""All checks of an installation."""

from __future__ import annotations

from app.config import Config
from app.core.health import Finding
from app.operations.checks.configuration import check_configuration
from app.operations.checks.database import (
    check_database,
    check_database_quickly,
    check_migration_role,
)
from app.operations.checks.queues import check_redis
from app.operations.checks.replicas import check_replicas, check_watched_replicas


def check_all(config: Config, *, quickly: bool = False) -> list[Finding]:
    """The findings of all checks, in transactions of their own.

    ``quickly`` is for a request: each check has a time-out, and PostgreSQL is known to answer.
    """
    return [
        *check_configuration(config),
        *(check_database_quickly() if quickly else check_database()),
        *check_migration_role(config),
        *(check_watched_replicas() if quickly else check_replicas()),
        *check_redis(),
    ]


def check_running(*, without: str) -> list[Finding]:
    """The findings on what changes while the service runs, quickly; the check ``without`` is left out.

    The configuration and the migration's role are not checked: it would take longer than all else.
    """
    return [*check_database_quickly(without), *check_watched_replicas(), *check_redis()]
