"""E-mail events and the state of each message: store and list them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import and_, bindparam, case, func
from sqlalchemy.dialects.postgresql import insert
from uuid_utils.compat import uuid7

from app.core.clock import utcnow
from app.core.db.bulk import parameters
from app.core.db.pages import Condition, Page, between, paginate
from app.core.db.statements import Statement
from app.emails import suppressions
from app.emails.events import STATES, EmailEvent, EmailKind
from app.emails.models import EmailEventRecord, EmailMessage
from app.emails.suppressions import MAX_KEY, normalized

ADD_EVENT = Statement(
    "email_events.add",
    insert(EmailEventRecord.__table__)
    .values(parameters(EmailEventRecord))
    .on_conflict_do_nothing(index_elements=["webhook_event_id", "ordinal"]),
)
_new = insert(EmailMessage).values(parameters(EmailMessage))
_said = _new.excluded
_rises = _said.rank > EmailMessage.rank
_same = _said.rank == EmailMessage.rank
ADD_TO_MESSAGE = Statement(
    "email_messages.add_event",
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
    ),
)
HAS_MESSAGE_ID = and_(
    func.left(EmailEventRecord.message_id, MAX_KEY) == bindparam("message_key"),
    EmailEventRecord.message_id == bindparam("message_id"),
)
HAS_ADDRESS = {
    model: model.address == bindparam("address") for model in (EmailEventRecord, EmailMessage)
}


def record(event: EmailEvent, *, source: str, webhook_event_id: UUID, ordinal: int) -> bool:
    """Store one event with its effects; False if this part of the delivery is already stored.

    ``source`` is the provider, ``ordinal`` the event's place in the delivery.
    """
    address = normalized(event.recipient)
    added = ADD_EVENT.execute(
        id=uuid7(),
        created_at=utcnow(),
        webhook_event_id=webhook_event_id,
        ordinal=ordinal,
        source=source,
        message_id=event.message_id,
        recipient=event.recipient,
        address=address,
        kind=event.kind.value,
        occurred_at=event.occurred_at,
        reason=event.reason,
        response=event.response,
        url=event.url,
        tags=list(event.tags),
        metadata=dict(event.metadata),
    )
    if not added:
        return False
    if event.message_id:
        ADD_TO_MESSAGE.execute(**_message_values(event, source, address))
    for change in event.suppressions:
        suppressions.record_change(change, address=address, source=source, at=event.occurred_at)
    return True


def list_events(
    *,
    limit: int,
    cursor: str | None,
    recipient: str | None = None,
    message_id: str | None = None,
    filters: Mapping[str, Any] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Page:
    """One page of events, oldest first. ``filters`` are values of columns.

    The period of ``occurred_at`` includes ``since`` and excludes ``until``.
    """
    model = EmailEventRecord
    conditions = [*_of_address(model, recipient), *between(model.occurred_at, since, until)]
    if message_id is not None:
        values = {"message_key": message_id[:MAX_KEY], "message_id": message_id}
        conditions.append(Condition(HAS_MESSAGE_ID, values))
    return paginate(model, *conditions, equal=filters, limit=limit, cursor=cursor)


def list_messages(
    *,
    limit: int,
    cursor: str | None,
    recipient: str | None = None,
    message_id: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Page:
    """One page of the messages' states, oldest message first."""
    equal = dict(filters or {})
    if message_id is not None:
        equal["message_id"] = message_id[:MAX_KEY]
    conditions = _of_address(EmailMessage, recipient)
    return paginate(EmailMessage, *conditions, equal=equal, limit=limit, cursor=cursor)


def _of_address(model: Any, address: str | None) -> list[Condition]:
    if address is None:
        return []
    return [Condition(HAS_ADDRESS[model], {"address": normalized(address)})]


def _message_values(event: EmailEvent, source: str, address: str) -> dict[str, Any]:
    known = event.kind in STATES
    opened, clicked = event.kind is EmailKind.OPENED, event.kind is EmailKind.CLICKED
    now = utcnow()
    return {
        "id": uuid7(),
        "created_at": now,
        "updated_at": now,
        "version": 1,
        "source": source,
        "message_id": event.message_id[:MAX_KEY],
        "address": address,
        "state": event.kind.value if known else "unknown",
        "rank": STATES.index(event.kind) + 1 if known else 0,
        "state_at": event.occurred_at if known else None,
        "opens": int(opened),
        "clicks": int(clicked),
        "first_opened_at": event.occurred_at if opened else None,
        "first_clicked_at": event.occurred_at if clicked else None,
    }
