"""Housekeeping that belongs to no domain."""

from __future__ import annotations

from app.auth import sessions
from app.core.db.transactions import transaction
from app.core.http import idempotency
from app.core.jobs.queues import Queue, job


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
