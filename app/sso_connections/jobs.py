"""Announces the ends of certificates."""

from __future__ import annotations

from app.core.actors import SYSTEM_JOB
from app.core.db import tenancy
from app.core.db.batches import BATCH
from app.core.jobs.queues import Queue, job
from app.sso_connections import service


@job(queue=Queue.MAINTENANCE, every=86_400)
def announce_certificates() -> None:
    """Record which certificates end within 30 days, in batches. Each end is recorded once."""
    has_more = True
    while has_more:
        with tenancy.platform_transaction():
            has_more = service.announce_endings(limit=BATCH, actor=SYSTEM_JOB)
