"""What happens to webhook events later."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from flask import current_app

from app.core.db import tenancy, transactions
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, job
from app.identity_sync import sync
from app.webhooks import doorbell, processing

EVENTS_PER_JOB = 200
WORKING_TIME = 60  # seconds after which a job lets others have the worker


@job(queue=Queue.WEBHOOKS, timeout=120)
def process_events(*event_ids: str) -> None:
    """Apply these events, then whatever else is due, each in a transaction of its own.

    And once more after a pause, for what came in silence (see :mod:`app.webhooks.doorbell`).
    """
    deadline = time.monotonic() + WORKING_TIME
    doorbell.take_down()
    for named in event_ids:
        _process(UUID(named))
    for pause in (doorbell.HEARD, 0.0):
        while found := _due():
            for event_id in found:
                _process(event_id)
            if time.monotonic() > deadline:
                process_events.push()
                return
        time.sleep(pause)


@job(queue=Queue.WEBHOOKS, every=60)
def sweep() -> None:
    """Queue the pending events whose jobs were lost."""
    with transaction():
        lost = processing.lost()
    push(lost)


@job(queue=Queue.WEBHOOKS, every=60)
def show_waiting_memberships() -> None:
    """Show memberships that waited for a tenant or a user that was then made by hand."""
    with transaction():
        waiting = sync.waiting_memberships()
    roles = current_app.extensions["config"].idp_role_map
    for source, object_id in waiting:
        transactions.run(partial(_show_again, source, object_id, roles))


@job(queue=Queue.MAINTENANCE, every=3600)
def forget_payloads() -> None:
    """Keep only the digest of what was processed long ago."""
    with transaction():
        processing.forget_payloads()


def ring(event_ids: Sequence[UUID]) -> None:
    """Have new events worked off once they are durable; a job that waits already will do."""
    if event_ids:
        transactions.on_commit(lambda: push(event_ids) if doorbell.ring() else None)


def push(event_ids: Sequence[UUID]) -> None:
    """Queue a job that begins with these events."""
    if event_ids:
        process_events.push(*map(str, event_ids[:EVENTS_PER_JOB]))


def _show_again(source: str, object_id: str, roles: Mapping[str, str]) -> None:
    tenancy.enter(tenancy.PLATFORM)
    sync.show_again(source, object_id, roles=roles)


def _process(event_id: UUID) -> None:
    delay = processing.process(event_id)
    if delay is not None:
        process_events.push(str(event_id), delay=delay)


def _due() -> list[UUID]:
    with transaction():
        return processing.due()
