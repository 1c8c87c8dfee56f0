"""Deletes the counts and the idempotency keys that are too old."""

from __future__ import annotations

from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, job
from app.usage import service


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_old_usage() -> None:
    """Delete old keys and the counts of old periods in batches, each in its own transaction."""
    for forget in (service.forget_old_keys, service.forget_old_periods):
        has_more = True
        while has_more:
            with transaction():
                tenancy.enter(tenancy.PLATFORM)
                has_more = forget()
