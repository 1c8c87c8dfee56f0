"""Announces the ends of certificates."""

from __future__ import annotations

from app.core.db.batches import in_batches
from app.core.jobs.queues import Queue, job
from app.sso_connections import service


@job(queue=Queue.MAINTENANCE, every=86_400)
def announce_certificates() -> None:
    """Record which certificates end within 30 days, in batches. Each end is recorded once."""
    in_batches(service.announce_endings)
