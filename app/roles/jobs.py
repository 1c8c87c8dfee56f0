"""Removes assignments of roles that have no effect any more: decisions look at what ends them."""

from __future__ import annotations

from functools import partial

from app.core.actors import SYSTEM_JOB
from app.core.db.batches import in_batches
from app.core.jobs.queues import Queue, job
from app.roles import role_assignments


@job(queue=Queue.MAINTENANCE, every=60)
def remove_ended() -> None:
    """Delete assignments that have expired, or whose group or API key has ended, in batches.

    Each batch has a transaction of its own.
    """
    in_batches(partial(role_assignments.remove_ended, actor=SYSTEM_JOB))
