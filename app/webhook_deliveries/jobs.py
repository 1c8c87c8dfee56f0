"""Background work of deliveries."""

from __future__ import annotations

from datetime import timedelta

from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, job
from app.webhook_deliveries.service import DAYS
from app.webhook_deliveries.statements import DELETE_OLD, DELETE_ORPHANS

BATCH = 1_000


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_deliveries() -> None:
    """Delete deliveries of 90 days ago, and those that wait for an endpoint that was deleted."""
    before = utcnow() - timedelta(days=DAYS)
    for statement, values in ((DELETE_OLD, {"before": before}), (DELETE_ORPHANS, {})):
        removed = BATCH
        while removed == BATCH:
            with transaction():
                tenancy.enter(tenancy.PLATFORM)
                removed = statement.execute(**values, batch=BATCH)
