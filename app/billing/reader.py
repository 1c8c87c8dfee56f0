"""The reader: reads the subjects of events from the billing providers, and applies them.

It does so for each provider with an API key; the worker leaves their events. It leases an event
before it reads, so no other reader reads the same event. Reading happens outside any transaction.
The claim of the event and its effect are one transaction. So a reader may be killed at any moment:
the event is due again when the lease ends, and is applied once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

from flask import Flask

from app.billing import api, mirror
from app.billing.api import NOT_FOUND, ReadFailed
from app.billing.handler import Reading, apply_event, told_by, wrong_mode
from app.billing.providers import PROVIDERS
from app.billing.providers.provider import BillingProvider
from app.core.clock import utcnow
from app.core.db import retries
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction
from app.core.db.transactions import DATABASE_FAULTS
from app.core.jobs.queues import logged_errors
from app.core.jobs.signals import listening
from app.core.observability.logs import resume_request
from app.inbox import processing
from app.inbox.providers.payloads import Unreadable, Unwanted
from app.inbox.receiving import READER, read_sources
from app.subscriptions.statuses import StatusClass

log = logging.getLogger(__name__)

TOGETHER = 5  # events of one provider that are read at a time
LEASE_SECONDS = 60
INTERVAL = 1.0  # seconds between two looks at the database; a message through Redis ends the wait
CONNECTIONS = threading.BoundedSemaphore(2)
"""Of the database. The other parts of the process need those that are left."""

LEASE = Statement(
    "webhook_events.lease",
    "UPDATE webhook_events SET next_attempt_at = :until, updated_at = now(), version = version + 1"
    " WHERE id = ANY (ARRAY(SELECT id FROM webhook_events"
    "   WHERE status = 'pending' AND source = :source AND next_attempt_at <= now()"
    "   ORDER BY next_attempt_at LIMIT :most FOR UPDATE SKIP LOCKED))"
    " RETURNING id, source, body, attempts, version, request_id",
)


def run_reader(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Read and apply events until ``stop()``; those that have begun are finished first."""
    woken = threading.Event()
    with app.app_context():
        running: dict[str, list[Future[None]]] = {name: [] for name in read_sources()}
    with (
        listening(app, READER, woken.set),
        ThreadPoolExecutor(TOGETHER * len(running) or 1, thread_name_prefix="billing") as threads,
    ):
        while not stop():
            for source, futures in running.items():
                futures[:] = [future for future in futures if not future.done()]
                for event in _lease(app, PROVIDERS[source], TOGETHER - len(futures)):
                    future = threads.submit(_attempt, app, event)
                    future.add_done_callback(lambda _: woken.set())
                    futures.append(future)
            woken.wait(INTERVAL)
            woken.clear()


def read(provider: BillingProvider, body: bytes | None) -> Reading:
    """Read what an event is about, if it is to be applied; raises ReadFailed."""
    now = utcnow()
    try:
        told = told_by(provider, body or b"")
    except (Unwanted, Unreadable):
        return Reading(now)
    if wrong_mode(told) is not None:
        return Reading(now)
    if told.subscription_id is None:
        customer = told.customer and api.read_customer(provider, told.customer.id)
        return Reading(now, customer=customer)
    try:
        read = api.read_subscription(provider, told.subscription_id)
    except ReadFailed as fault:
        said = told.snapshot
        if fault.status != NOT_FOUND or said is None or said.status_class is not StatusClass.ENDED:
            raise
        with CONNECTIONS, platform_transaction():
            is_known = mirror.is_known(provider.name, told.subscription_id)
        return Reading(now, said if is_known else None)  # not finding it confirms the end
    with CONNECTIONS, platform_transaction():
        needs_customer = mirror.needs_customer(provider.name, read.snapshot, told.tenant)
    customer = api.read_customer(provider, read.snapshot.customer_id) if needs_customer else None
    return Reading(read.at, read.snapshot, customer)


def _lease(app: Flask, provider: BillingProvider, most: int) -> Sequence[Any]:
    """The next events of a provider, at most ``most``; none while it takes no requests."""
    if not most or api.pause_of(provider):
        return ()
    until = utcnow() + timedelta(seconds=LEASE_SECONDS)
    try:
        with app.app_context(), CONNECTIONS:
            return retries.run(lambda: LEASE.all(source=provider.name, most=most, until=until))
    except DATABASE_FAULTS as fault:
        log.warning("billing_reader_failed", extra={"reason": type(fault).__name__})
        return ()


def _attempt(app: Flask, event: Any) -> None:
    """Read and apply a leased event, in a thread of its own.

    After an unexpected error the event is read again when the lease expires. A 429 does not count
    as an attempt.
    """
    fields = {"event_id": str(event.id), "source": event.source}
    with app.app_context(), logged_errors("billing_event_failed", **fields):
        resume_request(event.request_id)
        try:
            reading = read(PROVIDERS[event.source], event.body)
        except Exception as fault:
            is_ours, pause = not isinstance(fault, ReadFailed), getattr(fault, "pause", 0.0)
            reason = {"reason": str(fault)}
            log.warning("billing_read_failed", extra=fields | reason, exc_info=is_ours)
            with CONNECTIONS:
                retries.run(partial(processing.note_failure, event.id, fault, pause))
            return
        claim = partial(processing.claim_leased, event.id, event.version)
        with CONNECTIONS:
            processing.process(claim, partial(apply_event, reading=reading))
