"""The background job of overrides."""

from __future__ import annotations

from app.core.actors import SYSTEM_JOB
from app.core.db import tenancy
from app.core.jobs.queues import Queue, job
from app.flags import expiries


@job(queue=Queue.MAINTENANCE, every=30)
def announce_expiries() -> None:
    """Announce the overrides that have expired, in batches, each in its own transaction."""
    has_more = True
    while has_more:
        with tenancy.platform_transaction():
            has_more = expiries.announce(actor=SYSTEM_JOB)
