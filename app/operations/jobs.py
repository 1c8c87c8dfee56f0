"""Housekeeping that belongs to no domain."""

from __future__ import annotations

from app.auth import sessions
from app.config import current_config
from app.core.db.batches import in_batches
from app.core.db.transactions import transaction
from app.core.http import idempotency
from app.core.jobs.queues import Queue, job
from app.operations import retention
from app.usage import health as usage


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_idempotency_keys() -> None:
    """Delete the expired idempotency keys."""
    in_batches(idempotency.forget_expired)


@job(queue=Queue.MAINTENANCE, every=3600)
def keep_partitions() -> None:
    """Add the partitions of the next months; drop those of the audit rows that are too old."""
    retention.keep_partitions()


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_email_events() -> None:
    """Delete the e-mail events that were stored ``EMAIL_EVENT_DAYS`` ago."""
    retention.delete_old_rows("email_events", current_config().email_event_days)


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_console_sessions() -> None:
    """Delete the console's ended sessions and unused sign-in links."""
    with transaction():
        sessions.forget_expired()


@job(queue=Queue.MAINTENANCE, every=600)
def count_over_limits() -> None:
    """Count the tenants over their limits for ``/metrics``; it takes too long for each scrape."""
    usage.count_over_limits()
