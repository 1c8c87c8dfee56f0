"""All checks of an installation."""

from __future__ import annotations

from collections.abc import Iterable

from app.config import Config
from app.operations.checks.configuration import check_configuration
from app.operations.checks.database import (
    check_database,
    check_database_quickly,
    check_migration_role,
)
from app.operations.checks.finding import Finding
from app.operations.checks.queues import check_redis
from app.operations.checks.replicas import check_replicas, check_watched_replicas


def check_all(config: Config) -> list[Finding]:
    """The findings of all checks, in transactions of their own."""
    return _together(config, check_database(), check_replicas())


def check_quickly(config: Config) -> list[Finding]:
    """The same within a request: each check has a time-out, and PostgreSQL is known to answer."""
    return _together(config, check_database_quickly(), check_watched_replicas())


def _together(
    config: Config, on_database: Iterable[Finding], on_replicas: Iterable[Finding]
) -> list[Finding]:
    return [
        *check_configuration(config),
        *on_database,
        *check_migration_role(config),
        *on_replicas,
        *check_redis(),
    ]
