"""Deletes the counts and the idempotency keys that are too old."""

from __future__ import annotations

from functools import partial

from app.config import current_config
from app.core.db.batches import delete_in_batches
from app.core.jobs.queues import Queue, job
from app.usage import service


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys and the counts of old periods."""
    delete_in_batches(service.forget_old_keys)
    days = current_config().usage_history_days
    delete_in_batches(partial(service.forget_old_periods, days=days))
