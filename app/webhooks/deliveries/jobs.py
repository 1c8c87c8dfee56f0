"""Background work of deliveries."""

from __future__ import annotations

from datetime import timedelta

from app.core.clock import utcnow
from app.core.db.batches import in_batches
from app.core.jobs.queues import Queue, job
from app.webhooks.deliveries.service import DAYS
from app.webhooks.deliveries.statements import DELETE_OLD, DELETE_ORPHANS


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_deliveries() -> None:
    """Delete deliveries older than 90 days, and those that wait for a deleted endpoint."""
    before = utcnow() - timedelta(days=DAYS)
    in_batches(lambda limit: DELETE_OLD.execute(before=before, batch=limit))
    in_batches(lambda limit: DELETE_ORPHANS.execute(batch=limit))
