"""Working off the inbox: an event's effect and its new status are one commit.

Whoever works on an event holds its row; a second one leaves it alone. So an event is applied
exactly once, however often its job runs and whatever is killed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from flask import current_app
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.clock import utcnow
from app.core.db import tenancy, transactions
from app.core.errors import Conflict
from app.core.observability.logs import resume_request
from app.emails import service as emails
from app.emails.events import EmailEvent
from app.extensions import db
from app.identity_sync import sync
from app.identity_sync.events import Event, IdentityEvent, SubscriptionConfirmation
from app.webhooks.models import Status, WebhookEvent
from app.webhooks.providers import get_provider
from app.webhooks.providers.payloads import Unreadable, Unwanted
from app.webhooks.signatures.confirmation import confirm_subscription

log = logging.getLogger(__name__)

RETRY_DELAYS = (10, 60, 300, 1800)  # seconds after the first, second … failed attempt
STALE = timedelta(seconds=60)
"""A pending event that is overdue by this has lost its job."""
SLACK = timedelta(seconds=1)  # a delayed job may come a little early
LOST_AT_ONCE = 1000
DUE_AT_ONCE = 20
RACES = 3  # attempts at once when a row that was not there has just been made by somebody else
LONGEST_DETAIL = 500


def process(event_id: UUID) -> float | None:
    """Apply one event if it is pending and due; the seconds until it is tried again, or None.

    Raises where the database cannot be reached; the event then stays as it was.
    """
    try:
        _apply_with_races(event_id)
    except Exception as fault:
        db.session.remove()
        log.warning("webhook_attempt_failed", extra={"event_id": str(event_id)}, exc_info=True)
        return transactions.run(partial(_note_failure, event_id, fault))
    finally:
        db.session.remove()
    return None


def due() -> list[UUID]:
    """Some of the pending events that are due and that nobody works on, the oldest first."""
    statement = (
        select(WebhookEvent.id)
        .where(WebhookEvent.status == Status.PENDING.value)
        .where(WebhookEvent.next_attempt_at <= utcnow())
        .order_by(WebhookEvent.next_attempt_at)
        .limit(DUE_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    return list(db.session.execute(statement).scalars())


def lost() -> list[UUID]:
    """Pending events, at most a thousand, whose jobs have been lost."""
    statement = (
        select(WebhookEvent.id)
        .where(WebhookEvent.status == Status.PENDING.value)
        .where(WebhookEvent.next_attempt_at < utcnow() - STALE)
        .order_by(WebhookEvent.next_attempt_at)
        .limit(LOST_AT_ONCE)
    )
    return list(db.session.execute(statement).scalars())


def forget_payloads() -> int:
    """Reduce events processed long ago to their digest; how many there were."""
    kept = current_app.extensions["config"].webhook_payload_days
    old = (
        update(WebhookEvent)
        .where(WebhookEvent.body.is_not(None))
        .where(WebhookEvent.status.in_([Status.SUCCEEDED.value, Status.IGNORED.value]))
        .where(WebhookEvent.processed_at < utcnow() - timedelta(days=kept))
        .values(body=None, headers={})
    )
    return db.session.execute(old).rowcount  # type: ignore[attr-defined,no-any-return]


def _apply_with_races(event_id: UUID) -> None:
    for attempt in range(1, RACES + 1):
        try:
            transactions.run(lambda: _apply(event_id))
            return
        except (IntegrityError, Conflict):
            if attempt == RACES:
                raise
            log.info("webhook_race", extra={"event_id": str(event_id)})
            db.session.remove()


def _apply(event_id: UUID) -> None:
    tenancy.enter(tenancy.PLATFORM)
    event = _claim(event_id)
    if event is None:
        return
    resume_request(event.request_id)
    try:
        status, detail = _handle(event)
    except Unwanted as reason:
        status, detail = Status.IGNORED, str(reason)
    except Unreadable as fault:
        status, detail = Status.FAILED, str(fault)
    event.assign(
        {
            "status": status.value,
            "detail": detail,
            "attempts": event.attempts + 1,
            "next_attempt_at": None,
            "processed_at": utcnow(),
        }
    )
    log.info("webhook_processed", extra={"event_id": str(event_id), "status": status.value})


def _claim(event_id: UUID) -> WebhookEvent | None:
    """The event, held until the commit; None where it is done, held by another, or not due."""
    statement = (
        select(WebhookEvent)
        .where(WebhookEvent.id == event_id, WebhookEvent.status == Status.PENDING.value)
        .where(WebhookEvent.next_attempt_at <= utcnow() + SLACK)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    )
    return db.session.execute(statement).scalar_one_or_none()


def _handle(event: WebhookEvent) -> tuple[Status, str]:
    if event.body is None:
        raise Unreadable("only the digest is kept")
    events = get_provider(event.source).adapt(event.body)
    identity = [found for found in events if isinstance(found, IdentityEvent)]
    if identity:
        return _apply_identity(event, identity)
    for ordinal, found in enumerate(events):
        _apply_other(event, ordinal, found)
    return Status.SUCCEEDED, ""


def _apply_identity(event: WebhookEvent, events: Sequence[IdentityEvent]) -> tuple[Status, str]:
    outcome = sync.apply(
        events,
        source=event.source,
        event_id=event.external_id,
        roles=current_app.extensions["config"].idp_role_map,
        force=event.replays > 0,
    )
    if not outcome.changed:
        return Status.IGNORED, "stale: something newer is known"
    if outcome.waiting:
        return Status.SUCCEEDED, "kept until the organization and the user are known"
    return Status.SUCCEEDED, ""


def _apply_other(event: WebhookEvent, ordinal: int, found: Event) -> None:
    match found:
        case EmailEvent():
            emails.record(found, source=event.source, webhook_event_id=event.id, ordinal=ordinal)
        case SubscriptionConfirmation():
            confirm_subscription(found.url)


def _note_failure(event_id: UUID, fault: Exception) -> float | None:
    """Count the attempt and say when the next is due; after the last the event has failed."""
    event = db.session.execute(
        select(WebhookEvent)
        .where(WebhookEvent.id == event_id, WebhookEvent.status == Status.PENDING.value)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).scalar_one_or_none()
    if event is None:
        return None
    attempts = event.attempts + (0 if _is_outage(fault) else 1)
    delay = RETRY_DELAYS[max(attempts, 1) - 1] if attempts <= len(RETRY_DELAYS) else None
    event.assign(
        {
            "attempts": attempts,
            "detail": _describe(fault),
            "status": (Status.PENDING if delay else Status.FAILED).value,
            "next_attempt_at": _after(delay),
            "processed_at": None if delay else utcnow(),
        }
    )
    return delay


def _after(delay: float | None) -> datetime | None:
    return None if delay is None else utcnow() + timedelta(seconds=delay)


def _is_outage(fault: Exception) -> bool:
    """The database went away, which is no fault of the event's."""
    return isinstance(fault, PoolTimeout) or (
        isinstance(fault, DBAPIError) and fault.connection_invalidated
    )


def _describe(fault: Exception) -> str:
    """One line for operators, without the statement and its values."""
    said = str(getattr(fault, "orig", None) or fault).partition("\n")[0]
    text = f"{type(fault).__name__}: {said}"[:LONGEST_DETAIL]
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
