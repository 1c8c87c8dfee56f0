"""Ends holds that have expired; deletes counts, idempotency keys and holds that are too old."""

from __future__ import annotations

from functools import partial

from app.config import current_config
from app.core.db import tenancy
from app.core.db.batches import BATCH, delete_in_batches
from app.core.jobs.queues import Queue, job
from app.usage import holds, service


@job(queue=Queue.MAINTENANCE, every=60)
def sweep_holds() -> None:
    """End holds that have expired. They hold nothing before that, either."""
    with tenancy.platform_transaction():
        holds.sweep(BATCH)


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys, holds, and the counts of old periods."""
    delete_in_batches(service.forget_old_keys)
    delete_in_batches(holds.forget_old_holds)
    days = current_config().usage_history_days
    delete_in_batches(partial(service.forget_old_periods, days=days))
