"""Deletes the counts and the idempotency keys that are too old."""

from __future__ import annotations

from app.core.db.batches import delete_in_batches
from app.core.jobs.queues import Queue, job
from app.usage import service


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys and the counts of old periods."""
    delete_in_batches(service.forget_old_keys)
    delete_in_batches(service.forget_old_periods)
