"""Receiving: verify the raw bytes, store each event once, notify the worker after the commit.

What was answered 200 is in the database, whatever happens to the queue. One statement stores all
events of a request; the unique keys show which were stored before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam, cast, or_, select
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from app.config import current_config
from app.core.clock import utcnow
from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.statements import Statement
from app.core.jobs.queues import JOBS
from app.core.jobs.signals import Signal
from app.core.observability.logs import current_request_id
from app.inbox.models import Status, WebhookEvent
from app.inbox.providers import RECEIVERS, Receiver, choose
from app.inbox.providers.payloads import Posted, key
from app.inbox.providers.provider import Delivery
from app.inbox.verification import verify_request

PROCESS_EVENTS = "app.inbox.jobs.process_events"
JOB_LASTS = 10  # seconds; a job that has not started by then may be lost, so another is queued
INBOX = Signal("webhooks:inbox", lambda: JOBS[PROCESS_EVENTS].push_once(JOB_LASTS))
"""One job that has not started is enough, because it finds every event that was stored before."""
READER = Signal("webhooks:read")

REDACTED = "[redacted]"
SHOWN_HEADERS = frozenset((
    "content-length", "content-type", "date", "host", "svix-id", "svix-timestamp", "user-agent",
    "webhook-id", "webhook-timestamp", "x-amz-sns-message-id", "x-amz-sns-message-type",
    "x-amz-sns-topic-arn", "x-github-delivery", "x-github-event", "x-request-id",
    "x-twilio-email-event-webhook-timestamp",
))  # fmt: skip

OWN_COLUMNS = (
    "id", "external_id", "event_type", "body", "digest", "status", "detail", "next_attempt_at",
    "processed_at", "bp_subscription_id",
)  # fmt: skip
COMMON_COLUMNS = tuple(
    column for column in WebhookEvent.__table__.columns if column.name not in OWN_COLUMNS
)
STORE = Statement(
    "webhook_events.store",
    insert(WebhookEvent)
    .from_select(
        (*OWN_COLUMNS, *(column.name for column in COMMON_COLUMNS)),
        rows_from_arrays(WebhookEvent.__table__, OWN_COLUMNS).add_columns(
            *(
                cast(bindparam(column.name, type_=column.type), column.type)
                for column in COMMON_COLUMNS
            )
        ),
        include_defaults=False,
    )
    .on_conflict_do_nothing()
    .returning(WebhookEvent.id),
)
FIND_STORED = Statement(
    "webhook_events.find_stored",
    select(
        WebhookEvent.id, WebhookEvent.external_id, WebhookEvent.replay_key, WebhookEvent.status
    ).where(
        WebhookEvent.source == bindparam("source"),
        or_(
            WebhookEvent.external_id == any_(bindparam("external_ids", type_=ARRAY(Text))),
            WebhookEvent.replay_key == bindparam("replay_key", type_=Text),
        ),
    ),
)


@dataclass(frozen=True)
class Stored:
    """The id of each delivery's row, in order; how many rows are new; whether any is pending."""

    event_ids: list[UUID]
    added: int
    has_pending: bool


def receive(
    receiver: Receiver, headers: Iterable[tuple[str, str]], body: bytes
) -> dict[str, object]:
    """Store the events of a request in the current transaction; returns the answer.

    ``duplicate``: all of them were stored before. Raises Unauthenticated and Unavailable, see
    :func:`verify_request`.
    """
    headers = list(headers)
    verified = verify_request(receiver, headers, body)
    posted = Posted(body)
    provider = choose(receiver, verified.provider, posted)
    deliveries = provider.split(posted, verified.proof.message_id)
    replay_key = verified.proof.replay_key
    stored = store(
        provider.name,
        deliveries,
        headers=_redacted(headers),
        replay_key=key(replay_key) if replay_key else None,
    )
    if stored.has_pending:
        notify(provider.name)
    ids = [str(event_id) for event_id in stored.event_ids]
    named = {"event_ids": ids} if provider.sends_batches else {"event_id": ids[0]}
    is_duplicate = bool(deliveries) and not stored.added
    return {"status": "accepted", **named, "duplicate": is_duplicate}


def notify(*sources: str) -> None:
    """Notify the process that applies events of these providers that some are pending."""
    read = read_sources()
    if any(source in read for source in sources):
        READER.notify()
    if any(source not in read for source in sources):
        INBOX.notify()


def read_sources() -> list[str]:
    """The providers whose events the worker leaves, because there is a key of their API."""
    config = current_config()
    return [
        provider.name
        for receiver in RECEIVERS.values()
        if receiver.api_key and getattr(config, receiver.api_key)
        for provider in receiver.providers
    ]


def store(
    source: str,
    deliveries: Sequence[Delivery],
    *,
    headers: Mapping[str, str],
    replay_key: str | None,
) -> Stored:
    """Store each delivery once."""
    if not deliveries:
        return Stored([], 0, has_pending=False)
    now = utcnow()
    rows = [_row(delivery, now) for delivery in deliveries]
    added = set(
        STORE.scalars(
            source=source,
            headers=headers,
            replay_key=replay_key,
            request_id=current_request_id(),
            created_at=now,
            updated_at=now,
            version=1,
            attempts=0,
            replays=0,
            applied_parts=0,
            **as_arrays(rows),
        )
    )
    new = [row for row in rows if row["id"] in added]
    ids: dict[str, UUID] = {row["external_id"]: row["id"] for row in new}
    has_pending = any(row["status"] == Status.PENDING.value for row in new)
    missing = {delivery.external_id for delivery in deliveries} - ids.keys()
    if missing:
        known, is_waiting = _find_stored(source, missing, replay_key)
        ids |= known
        has_pending = has_pending or is_waiting
    return Stored([ids[delivery.external_id] for delivery in deliveries], len(added), has_pending)


def _row(delivery: Delivery, now: datetime) -> dict[str, Any]:
    """The columns of an event that differ within a request. An unreadable event has failed."""
    return {
        "id": uuid7(),
        "external_id": delivery.external_id,
        "event_type": delivery.event_type,
        "body": delivery.body,
        "digest": hashlib.sha256(delivery.body).hexdigest(),
        "status": (Status.FAILED if delivery.error else Status.PENDING).value,
        "detail": delivery.error,
        "next_attempt_at": None if delivery.error else now,
        "processed_at": now if delivery.error else None,
        "bp_subscription_id": delivery.bp_subscription_id,
    }


def _find_stored(
    source: str, external_ids: set[str], replay_key: str | None
) -> tuple[dict[str, UUID], bool]:
    """The rows that these events conflict with, by external id, and whether one is pending.

    A row conflicts by its external id or by its replay key. A pending row may have been stored by
    this very request before its connection was lost, so the worker has to be notified again.
    """
    found = FIND_STORED.all(source=source, external_ids=list(external_ids), replay_key=replay_key)
    same_event = [row for row in found if row.external_id in external_ids]
    same_signature = [row.id for row in found if replay_key and row.replay_key == replay_key]
    ids = dict.fromkeys(external_ids, same_signature[0]) if same_signature else {}
    ids |= {row.external_id: row.id for row in same_event}
    return ids, any(row.status == Status.PENDING.value for row in same_event)


def _redacted(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers that operators may see; of the others only the names."""
    named = {name.lower(): value for name, value in headers}
    return {name: value if name in SHOWN_HEADERS else REDACTED for name, value in named.items()}
