"""E-mail events and the state of each message: store and list them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import and_, bindparam, case, func

from app.audit.service import announce
from app.core.actors import SYSTEM_EMAIL
from app.core.db.bulk import as_arrays
from app.core.db.list_conditions import Condition, between
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.statements import Statement
from app.core.db.writes import insert_arrays, with_defaults, writes
from app.emails import suppressions
from app.emails.events import STATES, EmailEvent, EmailKind
from app.emails.models import EmailEventRecord, EmailMessage
from app.emails.suppressions import MAX_KEY, normalized
from app.search import writer as terms
from app.search.models import EntityType

ANNOUNCED = {EmailKind.BOUNCED: "email.bounced", EmailKind.COMPLAINED: "email.complained"}
ADD_EVENTS = Statement(
    "email_events.add",
    insert_arrays(EmailEventRecord.__table__)
    .on_conflict_do_nothing(index_elements=["webhook_event_id", "ordinal"])
    .returning(EmailEventRecord.ordinal),
)
_new = insert_arrays(EmailMessage.__table__)
_said = _new.excluded
_rises = _said.rank > EmailMessage.rank
_same = _said.rank == EmailMessage.rank
ADD_TO_MESSAGES = Statement(
    "email_messages.add_events",
    _new.on_conflict_do_update(
        index_elements=["source", "message_id", "address"],
        set_={
            "state": case((_rises, _said.state), else_=EmailMessage.state),
            "rank": func.greatest(_said.rank, EmailMessage.rank),
            "state_at": case(
                (_rises, _said.state_at),
                (_same, func.least(_said.state_at, EmailMessage.state_at)),
                else_=EmailMessage.state_at,
            ),
            "opens": EmailMessage.opens + _said.opens,
            "clicks": EmailMessage.clicks + _said.clicks,
            "first_opened_at": func.least(_said.first_opened_at, EmailMessage.first_opened_at),
            "first_clicked_at": func.least(_said.first_clicked_at, EmailMessage.first_clicked_at),
            "updated_at": _said.updated_at,
            "version": EmailMessage.version + 1,
        },
    ).returning(EmailMessage.id, EmailMessage.address, EmailMessage.message_id),
)
HAS_MESSAGE_ID = and_(
    func.left(EmailEventRecord.message_id, MAX_KEY) == bindparam("message_key"),
    EmailEventRecord.message_id == bindparam("message_id"),
)


def record(
    events: Sequence[EmailEvent], *, source: str, webhook_event_id: UUID, first_ordinal: int = 0
) -> int:
    """Store events of one delivery with their effects; the number that was not stored before.

    ``source`` is the provider, ``first_ordinal`` the place of the first event in the delivery.
    """
    numbered = list(enumerate(events, first_ordinal))
    if not numbered:
        return 0
    rows = [_event_values(event, source, webhook_event_id, place) for place, event in numbered]
    added = set(ADD_EVENTS.scalars(**as_arrays(rows)))
    # In one order, so that two transactions do not wait for each other.
    new = sorted((event for place, event in numbered if place in added), key=_message_key)
    messages = [
        _message_values(list(group), source, *key)
        for key, group in groupby(new, key=_message_key)
        if key[0]
    ]
    stored = ADD_TO_MESSAGES.all(**as_arrays(messages)) if messages else []
    new_ids = {message["id"] for message in messages}
    with writes() as w:
        new_rows = (row for row in stored if row.id in new_ids)
        terms.add(EntityType.EMAIL_MESSAGE, *new_rows, into=w)
        suppressions.record_changes(new, source=source, into=w)
        for (place, event), row in zip(numbered, rows, strict=True):
            if place in added and event.kind in ANNOUNCED:
                announce(ANNOUNCED[event.kind], row, actor=SYSTEM_EMAIL, into=w)
    return len(new)


def list_events(
    paging: Paging = FIRST_PAGE,
    *,
    recipient: str | None = None,
    message_id: str | None = None,
    occurred_after: datetime | None = None,
    occurred_before: datetime | None = None,
    **equal: str,
) -> Page:
    """One page of events; ``equal`` are values of columns.

    The period includes ``occurred_after`` and excludes ``occurred_before``.
    """
    conditions = between(EmailEventRecord.occurred_at, occurred_after, occurred_before)
    if recipient is not None:
        equal["address"] = normalized(recipient)
    if message_id is not None:
        values = {"message_key": message_id[:MAX_KEY], "message_id": message_id}
        conditions.append(Condition(HAS_MESSAGE_ID, values))
    return paginate(EmailEventRecord, paging, *conditions, equal=equal)


def list_messages(
    paging: Paging = FIRST_PAGE,
    *,
    recipient: str | None = None,
    message_id: str | None = None,
    **equal: str,
) -> Page:
    if message_id is not None:
        equal["message_id"] = message_id[:MAX_KEY]
    if recipient is not None:
        equal["address"] = normalized(recipient)
    return paginate(EmailMessage, paging, equal=equal)


def _event_values(
    event: EmailEvent, source: str, webhook_event_id: UUID, ordinal: int
) -> dict[str, object]:
    values = {
        "webhook_event_id": webhook_event_id,
        "ordinal": ordinal,
        "source": source,
        "message_id": event.message_id,
        "recipient": event.recipient,
        "address": normalized(event.recipient),
        "kind": event.kind.value,
        "occurred_at": event.occurred_at,
        "reason": event.reason,
        "response": event.response,
        "url": event.url,
        "tags": list(event.tags),
        "metadata": dict(event.metadata),
    }
    return with_defaults(EmailEventRecord.__table__, values)


def _message_key(event: EmailEvent) -> tuple[str, str]:
    return event.message_id[:MAX_KEY], normalized(event.recipient)


def _message_values(
    events: Sequence[EmailEvent], source: str, message_id: str, address: str
) -> dict[str, object]:
    """The values that the events of one message and one recipient give together."""
    states = [event for event in events if event.kind in STATES]
    highest = min(states, key=lambda event: (-_rank(event), event.occurred_at), default=None)
    opened, clicked = (
        [event.occurred_at for event in events if event.kind is kind]
        for kind in (EmailKind.OPENED, EmailKind.CLICKED)
    )
    values = {
        "source": source,
        "message_id": message_id,
        "address": address,
        "state": highest.kind.value if highest else "unknown",
        "rank": _rank(highest) if highest else 0,
        "state_at": highest.occurred_at if highest else None,
        "opens": len(opened),
        "clicks": len(clicked),
        "first_opened_at": min(opened, default=None),
        "first_clicked_at": min(clicked, default=None),
    }
    return with_defaults(EmailMessage.__table__, values)


def _rank(event: EmailEvent) -> int:
    return STATES.index(event.kind) + 1
