"""Applying events: the effect of an event and its new status are one transaction.

The worker claims an event by marking it ``succeeded`` and holds its row until the commit, so that
other workers skip it. A transaction that rolls back undoes the claim as well. So an event is
applied exactly once, however often jobs run and whichever process ends.

An event with many parts (recipients, members) is applied in slices. Each slice is one transaction,
which also stores how many parts are applied, and makes the event pending again behind the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg2
from psycopg2.errors import UniqueViolation
from sqlalchemy import ARRAY, Text, all_, bindparam, select, update
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.config import current_config
from app.core.clock import utcnow
from app.core.db import retries, tenancy
from app.core.db.queries import update_row
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged
from app.core.errors import Conflict
from app.core.observability.logs import resume_request
from app.emails import service as emails
from app.emails.events import EmailEvent
from app.identity_sync import sync
from app.identity_sync.events import IdentityEvent
from app.identity_sync.sync import Outcome
from app.inbox.models import Status, WebhookEvent
from app.inbox.providers import get_provider, receiver_of
from app.inbox.providers.payloads import Unreadable, Unwanted
from app.inbox.providers.provider import SubscriptionConfirmation
from app.inbox.receiving import INBOX, read_sources
from app.inbox.signatures.sns import confirm_subscription

log = logging.getLogger(__name__)

RETRY_DELAYS = (10, 60, 300, 1800)  # seconds after the first, second … failed attempt
OVERDUE = timedelta(seconds=60)
"""An event that has been due for so long has lost its job."""
SLICE = 500
"""Parts of one event that are applied in one transaction; it should take less than a second."""
MAX_COPIED = 64 * 1024 * 1024
"""Characters of all parts of one event. Each has its own copy of the text that they share."""
EARLY = timedelta(seconds=1)  # a delayed job may start so much before the event is due
MAX_DETAIL = 500

EVENTS = WebhookEvent.__table__
IS_PENDING = EVENTS.c.status == Status.PENDING.value
Apply = Callable[[WebhookEvent, Sequence[Any]], tuple[Status, str]]
CLAIM_NEXT = Statement(
    "webhook_events.claim_next",
    update(EVENTS)
    .where(
        EVENTS.c.id
        == select(EVENTS.c.id)
        .where(
            IS_PENDING,
            EVENTS.c.next_attempt_at <= bindparam("latest"),
            EVENTS.c.source != all_(bindparam("others", type_=ARRAY(Text))),
        )
        .order_by(EVENTS.c.next_attempt_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    .values(
        status=Status.SUCCEEDED.value,
        detail="",
        attempts=EVENTS.c.attempts + 1,
        next_attempt_at=None,
        processed_at=bindparam("now"),
        updated_at=bindparam("now"),
        version=EVENTS.c.version + 1,
    )
    .returning(*EVENTS.c, *tenancy.ENTER_PLATFORM),
)
LOCK_PENDING = Statement(
    "webhook_events.lock_pending",
    select(WebhookEvent).where(IS_PENDING, EVENTS.c.id == bindparam("id")).with_for_update(),
)
COUNT_OVERDUE = Statement(
    "webhook_events.count_overdue",
    "SELECT count(*) FROM webhook_events WHERE status = 'pending' AND next_attempt_at < :before"
    " AND source <> ALL (CAST(:others AS text[]))",
)
# The conditions hold outside the sub-selects too: an operator may replay an event meanwhile.
REMOVE_PAYLOADS = Statement(
    "webhook_events.remove_payloads",
    "UPDATE webhook_events SET body = NULL, headers = '{}'"
    " WHERE processed_at < :before AND body IS NOT NULL AND id IN ("
    "  SELECT id FROM webhook_events WHERE processed_at < :before AND body IS NOT NULL"
    "  ORDER BY processed_at LIMIT :limit)",
    prepare=False,
)
DELETE_OLD = Statement(
    "webhook_events.delete_old",
    "DELETE FROM webhook_events WHERE created_at < :before AND status <> 'pending' AND id IN ("
    "  SELECT id FROM webhook_events WHERE created_at < :before AND status <> 'pending'"
    "  ORDER BY created_at LIMIT :limit)",
    prepare=False,
)


@dataclass(frozen=True)
class Result:
    """One attempt at one event; ``retry_in``: seconds until the next attempt, where one follows."""

    event_id: UUID
    retry_in: float | None = None


def process_next() -> Result | None:
    """Apply the event that has been due for longest; None where no event is due.

    Events of :func:`read_sources` are left. Raises where the database cannot be reached; the event
    then stays pending.
    """
    return process(_claim_next, _apply_parts)


def process(claim: Callable[[], WebhookEvent | None], apply: Apply) -> Result | None:
    """Apply the event that ``claim`` returns in the platform's scope; None where it returns none.

    ``apply`` gets the event, and those of its parts that are not applied yet.
    """
    claimed: list[UUID] = []

    def work() -> None:
        claimed.clear()
        event = claim()
        if event is None:
            return
        claimed.append(event.id)
        resume_request(event.request_id)
        _apply(event, apply)

    try:
        retries.run(work)
    except Exception as fault:
        if not claimed:
            raise
        log.warning("webhook_attempt_failed", extra={"event_id": str(claimed[0])}, exc_info=True)
        return Result(claimed[0], retries.run(partial(note_failure, claimed[0], fault)))
    return Result(claimed[0]) if claimed else None


def sweep() -> int:
    """Notify the worker of pending events whose job was lost; the number of those events."""
    overdue = int(COUNT_OVERDUE.scalar(before=utcnow() - OVERDUE, others=read_sources()))
    if overdue:
        INBOX.notify()
    return overdue


def remove_payloads(limit: int) -> int:
    """Remove payloads of events processed ``WEBHOOK_PAYLOAD_DAYS`` ago; at most ``limit``.

    Returns their number. An event that has failed, or could never be read, counts as processed.
    """
    days = current_config().webhook_payload_days
    return REMOVE_PAYLOADS.execute(before=utcnow() - timedelta(days=days), limit=limit)


def delete_old(limit: int) -> int:
    """Delete events received ``WEBHOOK_EVENT_DAYS`` ago, at most ``limit``; returns their number.

    Those that are still to be applied stay.
    """
    days = current_config().webhook_event_days
    return DELETE_OLD.execute(before=utcnow() - timedelta(days=days), limit=limit)


def _claim_next() -> Any:
    now = utcnow()
    event = CLAIM_NEXT.first(now=now, latest=now + EARLY, others=read_sources())
    if event is not None:
        tenancy.note(tenancy.PLATFORM)
    return event


def claim_leased(event_id: UUID, version: int) -> WebhookEvent | None:
    """Claim an event that has been leased; None if it has changed since then."""
    tenancy.enter(tenancy.PLATFORM)
    event = LOCK_PENDING.first(id=event_id)
    if event is None or event.version != version:
        return None
    claimed = {
        "status": Status.SUCCEEDED.value,
        "detail": "",
        "attempts": event.attempts + 1,
        "next_attempt_at": None,
        "processed_at": utcnow(),
    }
    return update_row(WebhookEvent, event, claimed)[0]


def _apply(event: WebhookEvent, apply: Apply) -> None:
    """Apply a claimed event and store its status.

    Raises RowChanged where another transaction created the same row first; the next attempt finds
    that row.
    """
    try:
        status, detail = _handle(event, apply)
    except Unwanted as reason:
        status, detail = Status.IGNORED, str(reason)
    except Unreadable as fault:
        status, detail = Status.FAILED, str(fault)
    except (UniqueViolation, Conflict) as raced:
        raise RowChanged("webhook_events") from raced
    if status is not Status.PENDING and (detail or status is not Status.SUCCEEDED):
        values: dict[str, object] = {"status": status.value, "detail": detail}
        if status is Status.WAITING_TENANT:
            values |= {"processed_at": None}
        update_row(WebhookEvent, event, values)
    log.info("webhook_processed", extra={"event_id": str(event.id), "status": status.value})


def _handle(event: WebhookEvent, apply: Apply) -> tuple[Status, str]:
    """The status and the detail of an event after applying its next slice.

    Raises Unwanted and Unreadable, before anything is written.
    """
    if event.body is None:
        raise Unreadable("only the digest is kept")
    parts = get_provider(event.source).adapt(event.body)
    if len(parts) > 1 and len(parts) * len(repr(parts[0])) > MAX_COPIED:
        raise Unreadable(f"its {len(parts)} parts share too much text")
    end = event.applied_parts + SLICE
    status, detail = apply(event, parts[event.applied_parts : end])
    if end < len(parts):
        status = Status.PENDING
        values = {
            "status": status.value,
            "detail": f"{end} of {len(parts)} parts are applied",
            "applied_parts": end,
            "attempts": event.attempts - 1,
            "next_attempt_at": utcnow(),
            "processed_at": None,
        }
        update_row(WebhookEvent, event, values)
    return status, detail


def _apply_parts(event: WebhookEvent, parts: Sequence[Any]) -> tuple[Status, str]:
    apply = receiver_of(event.source).apply
    return (apply or _apply_slice)(event, parts)


def _apply_slice(event: WebhookEvent, parts: Sequence[object]) -> tuple[Status, str]:
    identity = [part for part in parts if isinstance(part, IdentityEvent)]
    if identity:
        return _apply_identity(event, identity)
    emails.record(
        [part for part in parts if isinstance(part, EmailEvent)],
        source=event.source,
        webhook_event_id=event.id,
        first_ordinal=event.applied_parts,
    )
    for part in parts:
        if isinstance(part, SubscriptionConfirmation):
            confirm_subscription(part.url)
    return Status.SUCCEEDED, ""


def _apply_identity(event: WebhookEvent, events: Sequence[IdentityEvent]) -> tuple[Status, str]:
    """Apply the events; IGNORED if they have no effect and no part was applied before them."""
    outcome = sync.apply(
        events,
        source=event.source,
        event_id=event.external_id,
        roles=current_config().idp_role_map,
        force=event.replays > 0,
    )
    if outcome in (Outcome.STALE, Outcome.DELETED):
        return (Status.SUCCEEDED, "") if event.applied_parts else (Status.IGNORED, outcome.value)
    return Status.SUCCEEDED, outcome.value


def note_failure(event_id: UUID, fault: Exception, pause: float = 0) -> float | None:
    """Count the attempt; the seconds until the next attempt, or None if the event has failed.

    An attempt is not counted if an outage of the database ended it, or if it has a ``pause``, the
    seconds until the next attempt.
    """
    event = LOCK_PENDING.first(id=event_id)
    if event is None:
        return None
    attempts = event.attempts + (0 if pause or _is_outage(fault) else 1)
    is_last = attempts > len(RETRY_DELAYS)
    delay = pause or (None if is_last else RETRY_DELAYS[max(attempts, 1) - 1])
    now = utcnow()
    values = {
        "attempts": attempts,
        "detail": _describe(fault),
        "status": (Status.FAILED if delay is None else Status.PENDING).value,
        "next_attempt_at": None if delay is None else now + timedelta(seconds=delay),
        "processed_at": now if delay is None else None,
    }
    update_row(WebhookEvent, event, values)
    return delay


def _is_outage(fault: Exception) -> bool:
    """Whether the connection to PostgreSQL broke, or none could be had."""
    if isinstance(fault, psycopg2.OperationalError):
        return fault.pgcode is None or fault.pgcode.startswith(("08", "57P"))
    return isinstance(fault, PoolTimeout | psycopg2.InterfaceError)


def _describe(fault: Exception) -> str:
    """The error's class and first line, without the statement and its values."""
    if isinstance(fault, RowChanged) and isinstance(fault.__cause__, Exception):
        fault = fault.__cause__
    first_line = str(fault).partition("\n")[0]
    text = f"{type(fault).__name__}: {first_line}"[:MAX_DETAIL]
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
