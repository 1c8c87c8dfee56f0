"""The operators' actions on the inbox: list, show and replay events."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Text, bindparam, func, or_, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.bulk import update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.statements import Statement
from app.core.db.writes import writes
from app.core.errors import Conflict
from app.inbox.models import Status, WebhookEvent
from app.inbox.providers.payloads import Unreadable, parse
from app.inbox.receiving import REDACTED, notify

SECRETS = {"signature", "Signature", "Token", "SubscribeURL", "UnsubscribeURL"}
LARGE = ("body", "headers")
REPLAYED_AT_ONCE = 1_000
LOCK_FAILED = Statement(
    "webhook_events.lock_failed",
    select(*(each for each in WebhookEvent.__table__.columns if each.name not in LARGE))
    .where(
        WebhookEvent.status == Status.FAILED.value,
        WebhookEvent.body.is_not(None),
        or_(
            bindparam("source", type_=Text).is_(None),
            WebhookEvent.source == bindparam("source", type_=Text),
        ),
    )
    .order_by(WebhookEvent.created_at, WebhookEvent.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True),
    prepare=False,
)
COUNT = Statement(
    "webhook_events.count_by_status",
    select(
        WebhookEvent.source,
        WebhookEvent.status,
        func.count().label("events"),
        func.min(WebhookEvent.created_at).label("oldest"),
    )
    .group_by(WebhookEvent.source, WebhookEvent.status)
    .order_by(WebhookEvent.source, WebhookEvent.status),
    prepare=False,
)


RELEASE = Statement(
    "webhook_events.release",
    "UPDATE webhook_events SET status = 'pending', detail = '', attempts = 0, next_attempt_at = now(),"
    " updated_at = now(), version = version + 1"
    " WHERE id = ANY (CAST(:ids AS uuid[])) AND status = 'waiting_tenant' RETURNING source",
)


class PayloadForgotten(Conflict):
    """The event's payload was deleted after its time."""

    code = "payload_forgotten"
    detail = "Only the digest of this event is kept, so it cannot be replayed; let the provider send it again."


def list_events(paging: Paging = FIRST_PAGE, **equal: str) -> Page:
    """One page of events, without body and headers; ``equal`` are values of columns."""
    return paginate(WebhookEvent, paging, equal=equal, without=LARGE)


def get_event(event_id: str) -> WebhookEvent:
    return queries.get_row(WebhookEvent, event_id)


def shown(body: bytes | None) -> object:
    """An event's JSON without secrets; text where it is not JSON; None once it was removed."""
    if body is None:
        return None
    try:
        document = parse(body)
    except Unreadable:
        return body.decode("utf-8", "replace")
    if isinstance(document, dict):
        return {name: REDACTED if name in SECRETS else v for name, v in document.items()}
    return document


def replay(event_id: UUID | str, *, actor: Actor) -> WebhookEvent:
    """Make an event pending again and notify the worker.

    All that the event says is then written, even where a newer event is known. Raises
    PayloadForgotten where its payload was removed.
    """
    event = queries.lock_row(WebhookEvent, event_id)
    if event.body is None:
        raise PayloadForgotten
    return _replay([event], actor=actor)[0]


def replay_failed(source: str | None = None, *, actor: Actor) -> int:
    """:func:`replay` the oldest failed events of one source or of all; returns their number.

    There are at most :data:`REPLAYED_AT_ONCE`. Those that another transaction changes are left.
    """
    events = LOCK_FAILED.all(source=source, most=REPLAYED_AT_ONCE)
    return len(_replay(events, actor=actor))


def _replay(events: Sequence[WebhookEvent], *, actor: Actor) -> list[WebhookEvent]:
    values = {
        "status": Status.PENDING.value,
        "detail": "",
        "attempts": 0,
        "applied_parts": 0,
        "next_attempt_at": utcnow(),
        "processed_at": None,
    }
    pending = [(event, {**values, "replays": event.replays + 1}) for event in events]
    changed = update_rows(WebhookEvent, pending)
    with writes() as w:
        for event, change in changed:
            if change is not None:
                audited = change.part(("status", "replays"))
                audit.record("webhook_event.replayed", event, audited, actor=actor, into=w)
    notify(*{event.source for event in events})
    return [event for event, _ in changed]


def release(event_ids: Sequence[UUID]) -> None:
    """Make events pending that wait for a tenant, and notify the worker."""
    if event_ids:
        notify(*set(RELEASE.scalars(ids=list(event_ids))))


def statistics() -> list[dict[str, object]]:
    """The number of events of each source and status, and when the first of them was received."""
    return [row._asdict() for row in COUNT.all()]
