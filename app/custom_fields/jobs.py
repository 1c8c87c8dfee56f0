"""Background work on search indexes."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from app.core.db.stalled import take_stalled
from app.core.jobs import slices
from app.core.jobs.queues import Queue, job
from app.custom_fields.models import FieldIndex
from app.custom_fields.search_index import builder

STALLED = timedelta(seconds=20)
TAKE_STALLED = take_stalled(FieldIndex, "updated_at", STALLED, FieldIndex.is_settled.is_(False))


@job(queue=Queue.INDEXES)
def sync_search_index(tenant_id: str, field_id: str) -> None:
    """Build or delete the index rows of one field.

    It is harmless to run it twice, or again after it was killed.
    """
    index = slices.take_turn(builder.work(UUID(tenant_id), UUID(field_id)))
    if index is not None and not index.is_settled:
        sync_search_index.push(tenant_id, field_id)


@job(queue=Queue.INDEXES, every=10)
def resume_search_indexes() -> None:
    """Queue the unfinished indexes that no worker has worked on for 20 seconds."""
    sync_search_index.push_stalled(TAKE_STALLED)
