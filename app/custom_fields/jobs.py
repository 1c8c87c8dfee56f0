"""Background work on search indexes."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from sqlalchemy import bindparam, select, update

from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, job
from app.custom_fields.models import FieldIndex
from app.custom_fields.search_index import builder
from app.extensions import db

TURN = 30.0  # seconds that one index keeps a worker before the next in the queue has its turn
STALLED = timedelta(seconds=20)
RESUMED_AT_ONCE = 100

_stalled = (
    select(FieldIndex.tenant_id, FieldIndex.field_id)
    .where(FieldIndex.is_settled.is_(False), FieldIndex.updated_at < bindparam("stalled_before"))
    .order_by(FieldIndex.updated_at)
    .limit(RESUMED_AT_ONCE)
    .with_for_update(skip_locked=True)
)


@job(queue=Queue.INDEXES)
def sync_search_index(tenant_id: str, field_id: str) -> None:
    """Build the index rows of one field, or remove them; running it twice, or after a kill, is harmless."""
    deadline = time.monotonic() + TURN
    for progress in builder.work(UUID(tenant_id), UUID(field_id)):
        if not progress.is_settled and time.monotonic() > deadline:
            sync_search_index.push(tenant_id, field_id)
            return


@job(queue=Queue.INDEXES, every=10)
def resume_search_indexes() -> None:
    """Queue the unfinished indexes that nobody has worked on for 20 seconds."""
    with transaction():
        tenancy.enter(tenancy.PLATFORM)
        stalled = db.session.execute(_stalled, {"stalled_before": utcnow() - STALLED}).all()
        for tenant_id, field_id in stalled:
            db.session.execute(_TOUCH, {"tenant": tenant_id, "field": field_id, "now": utcnow()})
            sync_search_index.push(str(tenant_id), str(field_id))


_TOUCH = (
    update(FieldIndex)
    .where(FieldIndex.tenant_id == bindparam("tenant"), FieldIndex.field_id == bindparam("field"))
    .values(updated_at=bindparam("now"))
)
