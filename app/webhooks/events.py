"""What a provider's event means, in words of our own.

Providers deliver late, twice and in any order. So an identity event says what it knows of one
object and where it stands in that object's history (:attr:`IdentityEvent.position`); whoever
applies it keeps, per object and attribute, the value of the greatest position. E-mail events
are facts about one message and one recipient; their order does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

Position = tuple[int, int, int]
"""Version (or event time), rank of the change, event time; times in microseconds since 1970."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One row for the inbox: a provider's batch is several."""

    external_id: str
    """The provider's id of the event, or the composite key that stands for it."""
    event_type: str
    body: bytes
    """The part of the request that is this event, as JSON."""
    error: str = ""
    """Why the event cannot be read; it is then stored as failed."""


class Change(StrEnum):
    """What happened to the object; of two at one moment the later in this list counts."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"

    @property
    def rank(self) -> int:
        """0, 1, 2: deleted beats updated beats created."""
        return list(Change).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEvent:
    """A change of one object of the identity provider; an attribute that is None was not said."""

    object_id: str
    change: Change
    occurred_at: datetime
    version: datetime | None = None
    """When the object itself last changed, where the provider says so."""

    @property
    def position(self) -> Position:
        """Orders the events of one object, whatever the order they arrive in.

        A deletion repeats the object's last version, so the event's own time counts for it.
        """
        says_version = self.version is not None and self.change is not Change.DELETED
        moment = self.version if self.version and says_version else self.occurred_at
        return microseconds(moment), self.change.rank, microseconds(self.occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationEvent(IdentityEvent):
    """Of an organization, which is a tenant here."""

    name: str | None = None
    slug: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEvent(IdentityEvent):
    """Of a person; ``active`` false is a suspension or a ban."""

    email: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipEvent(IdentityEvent):
    """Of a person's place in an organization; ``active`` false is an invitation or a pause.

    ``membership_id`` is ``""`` where the provider has none; ``object_id`` is then made of the
    two ids it connects. ``roles`` are the provider's own names.
    """

    membership_id: str = ""
    organization_id: str | None = None
    user_id: str | None = None
    roles: tuple[str, ...] | None = None
    active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrantEvent(IdentityEvent):
    """A role given to (``created``) or taken from (``deleted``) a member.

    It is an element of its own: it does not say that the membership exists, and a grant made
    before the membership last ended no longer counts.
    """

    organization_id: str
    user_id: str
    role_id: str
    role: str


def membership_key(organization_id: str, user_id: str) -> str:
    """The object id of a membership that has none of its own."""
    return f"{organization_id} {user_id}"


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    return (moment - EPOCH) // timedelta(microseconds=1)


class EmailKind(StrEnum):
    """What happened to one message for one recipient."""

    SCHEDULED = "scheduled"
    SENT = "sent"
    DEFERRED = "deferred"
    SOFT_BOUNCED = "soft_bounced"
    REJECTED = "rejected"
    """Never attempted: suppressed, refused by policy, or not renderable."""
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    """Permanently."""
    COMPLAINED = "complained"
    OPENED = "opened"
    CLICKED = "clicked"
    UNSUBSCRIBED = "unsubscribed"
    RESUBSCRIBED = "resubscribed"


class Cause(StrEnum):
    """Why an address is on the suppression list."""

    BOUNCED = "bounced"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"


@dataclass(frozen=True, slots=True)
class Suppression:
    """An address is put on the suppression list for a cause, or taken off it.

    ``scope`` is ``""`` for everything, else the group, topic or stream that was left.
    """

    cause: Cause
    scope: str = ""
    lifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailEvent:
    """One fact about one recipient of one message."""

    kind: EmailKind
    message_id: str
    """The provider's id of the message; ``""`` where the event is about the address alone."""
    recipient: str
    occurred_at: datetime
    reason: str = ""
    response: str = ""
    """What the receiving mail server answered."""
    url: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The sender's own values, by which it finds its communication again."""
    suppressions: tuple[Suppression, ...] = ()


_SUPPRESSIONS = {
    EmailKind.BOUNCED: (Cause.BOUNCED, False),
    EmailKind.COMPLAINED: (Cause.COMPLAINED, False),
    EmailKind.UNSUBSCRIBED: (Cause.UNSUBSCRIBED, False),
    EmailKind.RESUBSCRIBED: (Cause.UNSUBSCRIBED, True),
}


def suppressions_of(kind: EmailKind, scope: str = "") -> tuple[Suppression, ...]:
    """What an event of this kind does to the suppression list; ``scope`` is for opt-outs."""
    if kind not in _SUPPRESSIONS:
        return ()
    cause, lifted = _SUPPRESSIONS[kind]
    return (Suppression(cause, scope if cause is Cause.UNSUBSCRIBED else "", lifted),)


@dataclass(frozen=True, slots=True)
class SubscriptionConfirmation:
    """Amazon SNS asks to visit an address before it delivers anything."""

    url: str


Event = IdentityEvent | EmailEvent | SubscriptionConfirmation
