"""Removes assignments of roles that have no effect any more: decisions look at what ends them."""

from __future__ import annotations

from app.core.actors import SYSTEM_JOB
from app.core.db import tenancy
from app.core.jobs.queues import Queue, job
from app.roles import role_assignments

BATCH = 500


@job(queue=Queue.MAINTENANCE, every=60)
def remove_ended() -> None:
    """Delete assignments that have expired, or whose group or API key has ended, in batches.

    Each batch has a transaction of its own.
    """
    has_more = True
    while has_more:
        with tenancy.platform_transaction():
            has_more = role_assignments.remove_ended(limit=BATCH, actor=SYSTEM_JOB)
