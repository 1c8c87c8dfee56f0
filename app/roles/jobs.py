"""Removes assignments of roles whose time is over. Decisions compare the time itself."""

from __future__ import annotations

from app.core.actors import SYSTEM_JOB
from app.core.db import tenancy
from app.core.jobs.queues import Queue, job
from app.roles import role_assignments

BATCH = 500


@job(queue=Queue.MAINTENANCE, every=60)
def remove_expired() -> None:
    """Delete expired assignments in batches, each in its own transaction."""
    has_more = True
    while has_more:
        with tenancy.platform_transaction():
            has_more = role_assignments.remove_expired(limit=BATCH, actor=SYSTEM_JOB)
