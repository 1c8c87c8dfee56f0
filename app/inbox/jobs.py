"""The background jobs of webhooks."""

from __future__ import annotations

import time
from functools import partial

from app.config import current_config
from app.core.db import retries
from app.core.db.batches import in_batches
from app.core.db.transactions import transaction
from app.core.jobs import signals
from app.core.jobs.queues import Queue, job, logged_errors
from app.identity_sync import sync
from app.inbox import processing

MAX_WAITING = 200  # objects of one run of the job
WORKING_TIME = 60  # seconds after which a job queues the next one, so that others get a turn


@job(queue=Queue.WEBHOOKS, timeout=120)
def process_events() -> None:
    """Apply events until none is due, each in its own transaction.

    The last look is :data:`signals.PAUSE` after the start, for events that sent no signal.
    """
    process_events.forget_push()
    started = time.monotonic()
    while (looked := time.monotonic()) < started + WORKING_TIME:
        result = processing.process_next()
        if result is None:
            if looked >= started + signals.PAUSE:
                return
            time.sleep(signals.PAUSE)
        elif result.retry_in is not None:
            process_events.push(delay=result.retry_in)
    process_events.push()


@job(queue=Queue.WEBHOOKS, every=60)
def sweep() -> None:
    """Queue a job for pending events whose job was lost."""
    with transaction():
        processing.sweep()


@job(queue=Queue.WEBHOOKS, every=60)
def apply_waiting_memberships() -> None:
    """Apply what waits for a tenant or user that was not created by a provider's event."""
    with transaction():
        waiting = sync.FIND_WAITING.all(limit=MAX_WAITING)
    roles = current_config().idp_role_map
    for source, kind, object_id in waiting:
        with logged_errors("waiting_membership_failed", object_id=object_id):
            retries.run(partial(sync.apply_waiting, source, kind, object_id, roles=roles))


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_payloads() -> None:
    """Remove the payloads of events that were processed, or failed, long ago; their digests stay."""
    in_batches(processing.remove_payloads)


@job(queue=Queue.MAINTENANCE, every=3600)
def remove_old_webhook_events() -> None:
    """Delete the events that were received ``WEBHOOK_EVENT_DAYS`` ago."""
    in_batches(processing.delete_old)
