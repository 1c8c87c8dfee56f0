"""Housekeeping that belongs to no domain."""

from __future__ import annotations

from app.auth import sessions
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.http import idempotency
from app.core.jobs.queues import Queue, connection, job
from app.core.observability.metrics import note_over_limits
from app.operations import service


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_idempotency_keys() -> None:
    """Delete the expired idempotency keys."""
    with transaction():
        idempotency.forget_expired()


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_console_sessions() -> None:
    """Delete the console's ended sessions and unused sign-in links."""
    with transaction():
        sessions.forget_expired()


@job(queue=Queue.MAINTENANCE, every=600)
def count_over_limits() -> None:
    """Count the tenants over their limits for ``/metrics``; it takes too long for each scrape."""
    with transaction():
        tenancy.enter(tenancy.PLATFORM)
        found = service.count_over_limits()
    note_over_limits(connection(), found)
