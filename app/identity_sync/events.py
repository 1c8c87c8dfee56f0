"""What a provider's event means, in words of our own.

Providers deliver late, twice and in any order. So an identity event says what it knows of one
object and where it stands in that object's history (:attr:`IdentityEvent.position`); whoever
applies it keeps, per object and attribute, the value of the greatest position. E-mail events
are facts of their own: :mod:`app.emails.events`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from app.emails.events import EmailEvent

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


@dataclass(frozen=True, slots=True)
class SubscriptionConfirmation:
    """Amazon SNS asks to visit an address before it delivers anything."""

    url: str


Event = IdentityEvent | EmailEvent | SubscriptionConfirmation
