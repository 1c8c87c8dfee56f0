"""The interface of a provider: pure functions that split a request and interpret its events."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, TypeVar

from app.emails.events import EmailEvent
from app.identity_sync.events import Change, IdentityEvent, InvitationEvent, OrganizationEvent
from app.inbox.providers.payloads import (
    MAX_ID,
    Document,
    Posted,
    Unreadable,
    Unwanted,
    digest,
    key,
    parse_object,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event of a request, which becomes one row of the inbox."""

    external_id: str
    """The provider's id of the event, or another key that is unique for it."""
    event_type: str
    body: bytes
    """The part of the request that is this event: JSON."""
    error: str = ""
    """Why the event cannot be read. It is then stored as failed."""
    bp_subscription_id: str | None = None
    """The subscription that an event of a billing provider is about."""


@dataclass(frozen=True, slots=True)
class SubscriptionConfirmation:
    """Amazon SNS asks to visit an address before it delivers anything."""

    url: str


Event = IdentityEvent | EmailEvent | SubscriptionConfirmation


class Each(Sequence[T]):
    """One event per item (recipient, member), made by ``make`` when it is asked for.

    One delivery may have some 100,000 items. It is applied in slices, and each slice makes its own
    events only.
    """

    def __init__(self, make: Callable[[Any], T], items: Sequence[Any]) -> None:
        self._make = make
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._make(item) for item in self._items[place]]
        return self._make(self._items[place])


Adapt = Callable[[bytes], Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How one provider writes its events.

    ``adapt(body)`` returns the events of one delivery: an Event, or what the receiver's ``apply``
    takes. It, or making the first event, may raise Unwanted or Unreadable; making a later event
    does not. ``event_type`` and ``own_id`` find the provider's names in an event; other values than
    text are not names. ``subscription_id`` finds the one that a billing event is about.
    ``sends_batches``: a request is a list of events.
    """

    name: str
    adapt: Adapt
    event_type: Callable[[Document], object] = lambda event: event.value("type")
    own_id: Callable[[Document], object] = lambda event: None
    subscription_id: Callable[[Document], str | None] = lambda event: None
    prefers_own_id: bool = False
    sends_batches: bool = False

    def split(self, posted: Posted, message_id: str | None) -> list[Delivery]:
        """The deliveries of a verified request; what cannot be read is one with an ``error``.

        ``message_id`` is the delivery id in the signature, or None. The external id is the delivery
        id, else the event's own id, else a digest of the body. With ``prefers_own_id`` the event's
        own id goes before the delivery id.
        """
        try:
            if self.sends_batches:
                return [self._of_batch(element) for element in posted.batch]
            return [self._delivery(posted.event, posted.body, message_id)]
        except Unreadable as fault:
            return [_unreadable(posted.body, message_id, str(fault))]

    def _of_batch(self, element: object) -> Delivery:
        body = json.dumps(element, separators=(",", ":")).encode()
        if not isinstance(element, dict):
            return _unreadable(body, None, "the event is not a JSON object")
        return self._delivery(Document(element), body, None)

    def _delivery(self, event: Document, body: bytes, message_id: str | None) -> Delivery:
        ids = [message_id, self.own_id(event)]
        if self.prefers_own_id:
            ids.reverse()
        external_id = next((key(id_) for id_ in ids if isinstance(id_, str) and id_), None)
        event_type = self.event_type(event)
        name = event_type[:MAX_ID] if isinstance(event_type, str) else ""
        about = self.subscription_id(event)
        return Delivery(external_id or digest(body), name, body, bp_subscription_id=about)


class Facts(TypedDict):
    """The facts that :func:`lifecycle` reads of every event."""

    change: Change
    occurred_at: datetime
    version: datetime | None


def lifecycle(
    name: str,
    makers: Mapping[str, Callable[[Document, Facts], IdentityEvent]],
    *,
    occurred_at: Callable[[Document, Change], datetime],
    version: Callable[[Document], datetime | None],
    with_states: Collection[str] = (),
) -> Adapt:
    """Adapts events whose member ``name`` is an object's kind and a change: ``user.created``.

    Any other word is a change of an object whose kind is in ``with_states``: ``invitation.accepted``.
    The makers get the member ``data``, which is the object, and so does ``version``.
    """

    def adapt(body: bytes) -> list[IdentityEvent]:
        event = parse_object(body)
        kind, _, word = str(event.value(name)).partition(".")
        is_known = word in list(Change)
        if kind not in makers or not (is_known or kind in with_states):
            raise Unwanted("not about a user, an organization or a membership")
        change, data = Change(word) if is_known else Change.UPDATED, event.at("data")
        facts = Facts(change=change, occurred_at=occurred_at(event, change), version=version(data))
        return [makers[kind](data, facts)]

    return adapt


def organization(data: Document, facts: Facts) -> OrganizationEvent:
    return OrganizationEvent(
        **facts, object_id=data.identifier("id"), name=data.text("name"), slug=data.text("slug")
    )


def invitation(
    data: Document,
    facts: Facts,
    *,
    email: str = "email",
    role: str = "role",
    state: str = "state",
    accepted_by: str = "accepted_user_id",
    end: Callable[[Document, str], datetime | None] = Document.optional_moment,
) -> InvitationEvent:
    """The change of an invitation; the words are the provider's names of these members."""
    return InvitationEvent(
        **facts,
        object_id=data.identifier("id"),
        organization_id=data.optional_identifier("organization_id"),
        email=data.text(email),
        roles=data.texts(role) or None,
        state=data.text(state),
        expires_at=end(data, "expires_at"),
        accepted_user_id=data.optional_identifier(accepted_by),
    )


def _unreadable(body: bytes, message_id: str | None, error: str) -> Delivery:
    return Delivery(key(message_id) if message_id else digest(body), "", body, error)
