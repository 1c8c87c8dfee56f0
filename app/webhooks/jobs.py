"""What happens to webhook events later."""

from __future__ import annotations

from uuid import UUID

from app.core.jobs import Queue, job
from app.core.transactions import transaction
from app.webhooks import processing


@job(queue=Queue.WEBHOOKS, timeout=120)
def process_events(*event_ids: str) -> None:
    """Apply events, each in a transaction of its own; those that are done are left alone."""
    for event_id in event_ids:
        delay = processing.process(UUID(event_id))
        if delay is not None:
            process_events.push(event_id, delay=delay)


@job(queue=Queue.WEBHOOKS, every=60)
def sweep() -> None:
    """Queue the pending events whose jobs were lost."""
    found = True
    while found:
        with transaction():
            swept = processing.sweep()
            for event_id in swept:
                process_events.push(str(event_id))
        found = bool(swept)


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_payloads() -> None:
    """Keep only the digest of what was processed long ago."""
    with transaction():
        processing.forget_payloads()
