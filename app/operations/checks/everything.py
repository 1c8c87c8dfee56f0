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


def check_all(config: Config, *, quickly: bool = False, without: str = "") -> list[Finding]:
    """The findings of all checks, in transactions of their own.

    ``quickly`` is for a request: each check has a time-out, the one ``without`` is left out, and
    PostgreSQL is known to answer.
    """
    return [
        *check_configuration(config),
        *(check_database_quickly(without) if quickly else check_database()),
        *check_migration_role(config),
        *(check_watched_replicas() if quickly else check_replicas()),
        *check_redis(),
    ]
