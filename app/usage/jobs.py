"""Ends holds that have expired, stores the counts of each day, and deletes what is too old."""

from __future__ import annotations

from functools import partial
from typing import Any

from app.config import current_config
from app.core.actors import SYSTEM_JOB
from app.core.db import retries, tenancy
from app.core.db.batches import BATCH, delete_in_batches
from app.core.db.statements import Statement
from app.core.jobs.queues import Queue, job
from app.usage import days, holds, service


@job(queue=Queue.MAINTENANCE, every=60)
def sweep_holds() -> None:
    """End holds that have expired. They hold nothing before that, either."""
    delete_in_batches(holds.sweep)


@job(queue=Queue.MAINTENANCE, every=900)
def store_counts() -> None:
    """Store the counts of the day that have changed, in batches, each in its own transaction."""
    for store in days.STORES:
        place: days.Place | None = days.first_place()
        while place is not None:
            place = retries.run(partial(_store_batch, store, place))


def _store_batch(store: Statement[Any], after: days.Place) -> days.Place | None:
    tenancy.enter(tenancy.PLATFORM)
    return days.store_counts(store, after, limit=BATCH, actor=SYSTEM_JOB)


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys, holds, and the counts of old days and periods."""
    delete_in_batches(service.forget_old_keys)
    delete_in_batches(holds.forget_old_holds)
    delete_in_batches(days.forget_old)
    history = current_config().usage_history_days
    delete_in_batches(partial(service.forget_old_periods, days=history))
