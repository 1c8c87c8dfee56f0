"""The background jobs of imports."""

from __future__ import annotations

from uuid import UUID

from app.core.db import tenancy
from app.core.jobs import slices
from app.core.jobs.queues import Queue, job
from app.imports import service
from app.imports.work import work


@job(queue=Queue.IMPORTS)
def apply_import(import_id: str) -> None:
    """Apply an import. It is harmless to run it twice, or again after it was killed."""
    current = slices.take_turn(work(UUID(import_id)))
    if current is not None and current.finished_at is None:
        apply_import.push(import_id)


@job(queue=Queue.IMPORTS, every=30)
def resume_imports() -> None:
    """Queue the unfinished imports whose job was lost."""
    apply_import.push_stalled(service.TAKE_STALLED)


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_imports() -> None:
    """Remove the files and faults of imports after 7 days."""
    with tenancy.platform_transaction():
        service.remove_old()
