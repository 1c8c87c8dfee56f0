"""Background work of reads of the past."""

from __future__ import annotations

from app.core.jobs.queues import Queue, job
from app.history import bases


@job(queue=Queue.MAINTENANCE, timeout=3600, every=3600)
def add_bases() -> None:
    """Write the bases that are due for reads of the past."""
    bases.add_due()
