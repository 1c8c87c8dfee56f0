"""Storing what happened to e-mail, the state of each message, and the suppression list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.dialects.postgresql import insert

from app.audit import service as audit
from app.core.actors import SYSTEM_EMAIL, Actor
from app.core.clock import utcnow
from app.core.db.pages import Page, between, paginate
from app.core.errors import NotFound
from app.emails import events
from app.emails.events import STATES, EmailEvent, EmailKind
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.extensions import db

MAX_KEY = 255  # characters of a message id or a scope that count; a key has to be bounded

_ADD_EVENT = (
    insert(EmailEventRecord)
    .on_conflict_do_nothing(index_elements=["webhook_event_id", "ordinal"])
    .returning(EmailEventRecord.id)
)
_new = insert(EmailMessage)
_said = _new.excluded
_rises = _said.rank > EmailMessage.rank
_same = _said.rank == EmailMessage.rank
_ADD_TO_MESSAGE = _new.on_conflict_do_update(
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
)
_ADD_SUPPRESSION = insert(Suppression).on_conflict_do_nothing(
    index_elements=["address", "cause", "scope"]
)


def record(event: EmailEvent, *, source: str, webhook_event_id: UUID, ordinal: int) -> bool:
    """Store one event with its effects; False where this part of the delivery was stored before.

    ``source`` is the provider, ``ordinal`` the event's place in the delivery.
    """
    address = normalized(event.recipient)
    stored = db.session.execute(
        _ADD_EVENT,
        {
            "webhook_event_id": webhook_event_id,
            "ordinal": ordinal,
            "source": source,
            "message_id": event.message_id,
            "recipient": event.recipient,
            "address": address,
            "kind": event.kind.value,
            "occurred_at": event.occurred_at,
            "reason": event.reason,
            "response": event.response,
            "url": event.url,
            "tags": list(event.tags),
            "sender_values": dict(event.metadata),
        },
    ).scalar()
    if stored is None:
        return False
    if event.message_id:
        db.session.execute(_ADD_TO_MESSAGE, _message_values(event, source, address))
    for change in event.suppressions:
        _learn(change, address=address, source=source, at=event.occurred_at)
    return True


def normalized(address: str) -> str:
    """The form in which addresses are compared: lower case, no space around."""
    return address.strip().lower()


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
    """Stored events, oldest first; ``filters`` compare columns, the times bound ``occurred_at``."""
    model = EmailEventRecord
    fits = [*_address(model, recipient), *between(model.occurred_at, since, until)]
    if message_id is not None:
        fits += [
            func.left(model.message_id, MAX_KEY) == message_id[:MAX_KEY],
            model.message_id == message_id,
        ]
    return paginate(model, *fits, equal=filters, limit=limit, cursor=cursor)


def list_messages(
    *,
    limit: int,
    cursor: str | None,
    recipient: str | None = None,
    message_id: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Page:
    """What became of messages, oldest first."""
    fits = _address(EmailMessage, recipient)
    if message_id is not None:
        fits.append(EmailMessage.message_id == message_id[:MAX_KEY])
    return paginate(EmailMessage, *fits, equal=filters, limit=limit, cursor=cursor)


def list_suppressions(
    *,
    limit: int,
    cursor: str | None,
    address: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Page:
    """The reasons that hold now, oldest first."""
    equal = {**(filters or {}), "is_active": True}
    fits = _address(Suppression, address)
    return paginate(Suppression, *fits, equal=equal, limit=limit, cursor=cursor)


def _address(model: Any, address: str | None) -> list[ColumnElement[bool]]:
    return [] if address is None else [model.address == normalized(address)]


def is_suppressed(address: str) -> bool:
    """Whether anything on the list speaks against writing to the address."""
    statement = select(Suppression.id).filter_by(address=normalized(address), is_active=True)
    return db.session.execute(statement.limit(1)).first() is not None


def lift_suppression(address: str, *, actor: Actor) -> None:
    """Take an address off the list, for every cause and scope; NotFound where it is not listed.

    What happened before now does not put it back when it is learnt late.
    """
    statement = (
        select(Suppression)
        .filter_by(address=normalized(address), is_active=True)
        .order_by(Suppression.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    rows = db.session.execute(statement).scalars().all()
    if not rows:
        raise NotFound
    now = utcnow()
    for row in rows:
        change = row.assign({"lifted_at": now, "is_active": False})
        if change is not None:
            audit.record("suppression.lifted", row, change, actor=actor)


def _learn(change: events.Suppression, *, address: str, source: str, at: datetime) -> None:
    """Remember when the address was last suppressed, or relieved, for this cause."""
    key = {"address": address, "cause": change.cause.value, "scope": change.scope[:MAX_KEY]}
    db.session.execute(_ADD_SUPPRESSION, {**key, "source": source, "is_active": False})
    row = db.session.execute(
        select(Suppression)
        .filter_by(**key)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).scalar_one()
    said = row.learn(
        suppressed_at=None if change.lifted else at, lifted_at=at if change.lifted else None
    )
    changed = row.assign({**said, "source": source})
    if changed is not None and "is_active" in changed.after:
        action = "suppression.added" if row.is_active else "suppression.lifted"
        audit.record(action, row, changed, actor=SYSTEM_EMAIL)


def _message_values(event: EmailEvent, source: str, address: str) -> dict[str, Any]:
    known = event.kind in STATES
    opened, clicked = event.kind is EmailKind.OPENED, event.kind is EmailKind.CLICKED
    return {
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
