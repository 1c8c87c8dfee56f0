"""Background work of the event feed."""

from __future__ import annotations

from app.core.jobs.queues import Queue, job
from app.events import positions


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_events() -> None:
    """Remove the events that are older than ``EVENT_DAYS``."""
    positions.remove_old()


@job(queue=Queue.MAINTENANCE, timeout=3600, every=3600)
def order_older_audit_rows() -> None:
    """Give positions to audit rows of earlier releases."""
    positions.order_older()
