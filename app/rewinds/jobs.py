"""The background jobs of rewinds."""

from __future__ import annotations

from uuid import UUID

from app.core.jobs import slices
from app.core.jobs.queues import Queue, job
from app.rewinds import service
from app.rewinds.work import work


@job(queue=Queue.IMPORTS)
def rewind(rewind_id: str) -> None:
    """Do a rewind. It is harmless to run it twice, or again after it was killed."""
    current = slices.take_turn(work(UUID(rewind_id)))
    if current is not None and current.finished_at is None:
        rewind.push(rewind_id, delay=current.position is None)


@job(queue=Queue.IMPORTS, every=30)
def resume_rewinds() -> None:
    """Queue the unfinished rewinds whose job was lost."""
    rewind.push_stalled(service.TAKE_STALLED)
