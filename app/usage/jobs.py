"""Deletes the idempotency keys that count no more."""

from __future__ import annotations

from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, job
from app.usage import service


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_usage_keys() -> None:
    """Delete the old keys in batches, each in a transaction of its own."""
    has_more = True
    while has_more:
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            has_more = service.forget_old_keys()
