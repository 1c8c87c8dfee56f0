"""Ends holds that have expired, stores the counts of each day, and deletes what is too old."""

from __future__ import annotations

from functools import partial

from app.config import current_config
from app.core.actors import SYSTEM_JOB
from app.core.db import retries, tenancy
from app.core.db.batches import BATCH, in_batches
from app.core.jobs.queues import Queue, job
from app.usage import days, holds, statements


@job(queue=Queue.MAINTENANCE, every=60)
def sweep_holds() -> None:
    """End holds that have expired. They hold nothing before that, either."""
    in_batches(holds.sweep)


@job(queue=Queue.MAINTENANCE, every=900)
def store_counts() -> None:
    """Store the counts of the day that have changed, in batches, each in its own transaction."""
    place: days.Place | None = days.first_place()
    while place is not None:
        place = retries.run(partial(_store_batch, place))


def _store_batch(after: days.Place) -> days.Place | None:
    tenancy.enter(tenancy.PLATFORM)
    return days.store_counts(after, limit=BATCH, actor=SYSTEM_JOB)


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys, holds, and the counts of old days and periods."""
    history = current_config().usage_history_days
    in_batches(lambda count: statements.DELETE_OLD_KEYS.execute(count=count))
    in_batches(lambda count: statements.DELETE_OLD_HOLDS.execute(count=count))
    in_batches(lambda count: statements.DELETE_OLD_DAYS.execute(count=count))
    in_batches(lambda count: statements.DELETE_OLD_PERIODS.execute(count=count, days=history))
