"""What operators do with the inbox: look, and have an event applied again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.pages import Page, between, paginate
from app.core.db.queries import Change
from app.core.errors import Conflict
from app.extensions import db
from app.webhooks.models import Status, WebhookEvent
from app.webhooks.providers.payloads import Unreadable, parse

REDACTED = "[redacted]"
_SECRETS = {"signature", "Signature", "Token", "SubscribeURL", "UnsubscribeURL"}


def list_events(
    *,
    limit: int,
    cursor: str | None,
    filters: Mapping[str, Any] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Page:
    """Events in the order they came; ``filters`` compare columns, the times bound the arrival."""
    arrived = between(WebhookEvent.created_at, since, until)
    return paginate(WebhookEvent, *arrived, equal=filters, limit=limit, cursor=cursor)


def get_event(event_id: str) -> WebhookEvent:
    """One event; NotFound where there is none."""
    return queries.get_row(WebhookEvent, event_id)


def shown(body: bytes | None) -> Any:
    """What an event said, its secrets left out; text where it is not JSON, None if forgotten."""
    if body is None:
        return None
    try:
        document = parse(body)
    except Unreadable:
        return body.decode("utf-8", "replace")
    if isinstance(document, dict):
        return {name: REDACTED if name in _SECRETS else v for name, v in document.items()}
    return document


def replay(event_id: UUID | str, *, actor: Actor) -> WebhookEvent:
    """Make an event pending again, as if it had just come; the caller rings the worker.

    What it says is then written even where it says nothing new. Conflict ``payload_forgotten``
    where only its digest is left.
    """
    event = queries.lock_row(WebhookEvent, event_id)
    if event.body is None:
        raise Conflict("Only the digest of this event is kept.", code="payload_forgotten")
    values = {
        "status": Status.PENDING.value,
        "detail": "",
        "attempts": 0,
        "replays": event.replays + 1,
        "next_attempt_at": utcnow(),
        "processed_at": None,
    }
    change = event.assign(values)
    shown = ("status", "replays")
    if change is not None:
        before, after = (
            {name: v for name, v in side.items() if name in shown}
            for side in (change.before, change.after)
        )
        audit.record("webhook_event.replayed", event, Change(before, after), actor=actor)
    return event


def failed_ids(source: str | None = None) -> list[UUID]:
    """The events that have failed and can be replayed, of one source or of all."""
    failed = select(WebhookEvent.id).where(
        WebhookEvent.status == Status.FAILED.value, WebhookEvent.body.is_not(None)
    )
    if source is not None:
        failed = failed.where(WebhookEvent.source == source)
    return list(db.session.execute(failed.order_by(WebhookEvent.created_at)).scalars())


def statistics() -> list[dict[str, Any]]:
    """How many events each source has in each status, with the oldest of them."""
    columns = (WebhookEvent.source, WebhookEvent.status)
    counted = select(*columns, func.count(), func.min(WebhookEvent.created_at)).group_by(*columns)
    return [
        {"source": source, "status": status, "events": count, "oldest": oldest}
        for source, status, count, oldest in db.session.execute(counted.order_by(*columns))
    ]
