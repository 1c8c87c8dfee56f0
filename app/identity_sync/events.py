"""Identity events in one form for all providers.

They change organizations, users, memberships, invitations and SSO connections.

Providers deliver late, twice and in any order. So each event has a position in the history of its
object (:attr:`IdentityEvent.position`). The value of an attribute with the greatest position
counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from app.core.validation.scalars import address_or_empty, bounded_name

Position = tuple[int, int, int]
"""Version or event time, rank of the change, event time. Times are microseconds since 1970."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


STORED_AS = {
    "name": bounded_name,
    "first_name": bounded_name,
    "last_name": bounded_name,
    "provider": bounded_name,
    "type": bounded_name,
    "email": address_or_empty,
}


class Change(StrEnum):
    """What happened to the object. At the same moment, the later in this list counts."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"

    @property
    def rank(self) -> int:
        """0, 1, 2: deleted beats updated beats created."""
        return list(Change).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEvent:
    """A change of one object of the identity provider. None: the event does not say it."""

    object_id: str
    change: Change
    occurred_at: datetime
    version: datetime | None = None
    """When the object last changed; None where the provider does not say it."""

    @property
    def position(self) -> Position:
        """The event's place in the history of its object.

        A deletion repeats the object's last version, so its position is the time of the event.
        """
        is_deletion = self.change is Change.DELETED
        moment = self.occurred_at if is_deletion else self.version or self.occurred_at
        return microseconds(moment), self.change.rank, microseconds(self.occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationEvent(IdentityEvent):
    """A change of an organization, which is a tenant here."""

    name: str | None = None
    slug: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEvent(IdentityEvent):
    """A change of a person; ``active`` false is a suspension or a ban.

    ``email_verified``: whether the provider has verified the address of the same event.
    """

    email: str | None = None
    email_verified: bool | None = None
    first_name: str | None = None
    last_name: str | None = None
    active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipEvent(IdentityEvent):
    """A change of a person's membership; ``active`` false is an invitation or a pause.

    ``membership_id`` is ``""`` where the provider has none; ``object_id`` is then
    :func:`membership_key`. ``roles`` are the provider's names.
    """

    membership_id: str = ""
    organization_id: str | None = None
    user_id: str | None = None
    roles: tuple[str, ...] | None = None
    active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrantEvent(IdentityEvent):
    """A role given to (``created``) or taken from (``deleted``) a member.

    It does not say that the membership exists. A grant from before the membership last ended does
    not count.
    """

    organization_id: str
    user_id: str
    role_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationEvent(IdentityEvent):
    """A change of an invitation. ``state`` and ``roles`` are the provider's names."""

    organization_id: str | None = None
    email: str | None = None
    roles: tuple[str, ...] | None = None
    state: str | None = None
    expires_at: datetime | None = None
    accepted_user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEvent(IdentityEvent):
    """A change of an SSO connection. ``state`` is the provider's name.

    ``certificate``: what one of its certificates is used for, and when that certificate ends.
    """

    organization_id: str | None = None
    name: str | None = None
    provider: str | None = None
    type: str | None = None
    state: str | None = None
    domains: tuple[str, ...] | None = None
    certificate: tuple[str, datetime] | None = None


def storable(event: IdentityEvent) -> IdentityEvent:
    """The event with names and an address as this service stores them."""
    values = {name: getattr(event, name, None) for name in STORED_AS}
    changed: dict[str, Any] = {
        name: STORED_AS[name](value) for name, value in values.items() if value is not None
    }
    return replace(event, **changed)


def membership_key(organization_id: str, user_id: str) -> str:
    """The object id of a membership that has none of its own."""
    return f"{organization_id} {user_id}"


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
