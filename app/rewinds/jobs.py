"""The background jobs of rewinds."""

from __future__ import annotations

import time
from uuid import UUID

from app.core.db import tenancy
from app.core.jobs.queues import Queue, job
from app.rewinds import service
from app.rewinds.work import work

TURN = 5.0  # seconds of work, before the worker takes the next job of all queues


@job(queue=Queue.IMPORTS)
def rewind(rewind_id: str) -> None:
    """Do a rewind. It is harmless to run it twice, or again after it was killed."""
    deadline = time.monotonic() + TURN
    for current in work(UUID(rewind_id)):
        if current is None or current.finished_at is not None:
            return
        if current.position is None or time.monotonic() > deadline:
            rewind.push(rewind_id, delay=current.position is None)
            return


@job(queue=Queue.IMPORTS, every=30)
def resume_rewinds() -> None:
    """Queue the unfinished rewinds whose job was lost."""
    with tenancy.platform_transaction():
        service.queue_stalled()
