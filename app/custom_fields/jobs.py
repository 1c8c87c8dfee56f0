"""Background work on search indexes."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from app.core.db import tenancy
from app.core.db.stalled import take_stalled
from app.core.jobs.queues import Queue, job
from app.custom_fields.models import FieldIndex
from app.custom_fields.search_index import builder

TURN = 30.0  # seconds of work on one index, before the worker takes the next job of the queue
STALLED = timedelta(seconds=20)
TAKE_STALLED = take_stalled(FieldIndex, "updated_at", STALLED, FieldIndex.is_settled.is_(False))


@job(queue=Queue.INDEXES)
def sync_search_index(tenant_id: str, field_id: str) -> None:
    """Build or delete the index rows of one field.

    It is harmless to run it twice, or again after it was killed.
    """
    deadline = time.monotonic() + TURN
    for index in builder.work(UUID(tenant_id), UUID(field_id)):
        if not index.is_settled and time.monotonic() > deadline:
            sync_search_index.push(tenant_id, field_id)
            return


@job(queue=Queue.INDEXES, every=10)
def resume_search_indexes() -> None:
    """Queue the unfinished indexes that no worker has worked on for 20 seconds."""
    with tenancy.platform_transaction():
        for row in TAKE_STALLED.all():
            sync_search_index.push(str(row.tenant_id), str(row.field_id))
