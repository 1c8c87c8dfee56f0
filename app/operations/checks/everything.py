"""All checks of an installation."""

from __future__ import annotations

from app.config import Config
from app.operations.checks.configuration import check_configuration
from app.operations.checks.database import (
    check_database,
    check_database_quickly,
    check_migration_role,
)
from app.operations.checks.finding import Finding
from app.operations.checks.queues import check_redis


def check_all(config: Config) -> list[Finding]:
    """The findings of all checks, in transactions of their own."""
    return _together(config, list(check_database()))


def check_quickly(config: Config) -> list[Finding]:
    """The same within a request: each check has a time-out, and PostgreSQL is known to answer."""
    return _together(config, list(check_database_quickly()))


def _together(config: Config, on_database: list[Finding]) -> list[Finding]:
    return [
        *check_configuration(config),
        *on_database,
        *check_migration_role(config),
        *check_redis(),
    ]
