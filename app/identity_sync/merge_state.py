"""Merging events into the state of an object, with the same result for every order of delivery.

A place is the event's position and its id. Each attribute has the value with the greatest place,
a last-writer-wins register. Whether the object exists is such a register too: a deletion counts
against everything before it, a later creation counts again. These are pure functions; they do not
use the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from app.auth.permissions import Role
from app.core.validation.scalars import bounded_name
from app.identity_sync.events import EPOCH, Change, IdentityEvent, OrganizationEvent, RoleGrantEvent

Place = list[Any]
"""Version, rank, event time, event id: compared in this order."""

GRANT, CERTIFICATE = "grant:", "certificate:"
DAYS = timedelta(days=7)
MAX_DOMAINS = 100  # of an SSO connection; further ones are left out
NOT_ATTRIBUTES = {each.name for each in fields(IdentityEvent)}


@dataclass
class State:
    """The state of one object.

    ``place`` and ``exists`` are of the newest event; ``ended`` is the place of the newest deletion.
    ``attributes``: name -> value and place. ``seen`` is set by every event but a deletion.
    """

    place: Place | None = None
    exists: bool = False
    ended: Place | None = None
    attributes: dict[str, tuple[Any, Place]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> State:
        """The state that was stored by :func:`dataclasses.asdict`."""
        attributes = {name: (value, place) for name, (value, place) in stored["attributes"].items()}
        return cls(stored["place"], stored["exists"], stored["ended"], attributes)

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes[name][0] if name in self.attributes else default

    def merge(self, event: IdentityEvent, event_id: str) -> bool:
        """Merge an event; whether it changed the state."""
        place = [*event.position, event_id]
        if isinstance(event, RoleGrantEvent):
            granted = {"role": event.role, "granted": event.change is Change.CREATED}
            return self._set(GRANT + event.role_id, granted, place)
        return any([self._set_existence(event.change, place), *self._set_attributes(event, place)])

    def _set_existence(self, change: Change, place: Place) -> bool:
        changed = False
        if self.place is None or place > self.place:
            self.place, self.exists = place, change is not Change.DELETED
            changed = True
        if change is Change.DELETED and (self.ended is None or place > self.ended):
            self.ended = place
            changed = True
        return changed

    def _set_attributes(self, event: IdentityEvent, place: Place) -> Iterator[bool]:
        for name in [each.name for each in fields(event) if each.name not in NOT_ATTRIBUTES]:
            value = getattr(event, name)
            if name == "certificate" and value is not None:
                name, value = CERTIFICATE + value[0], value[1]
            if value is not None:
                yield self._set(name, _as_json(value), place)
        if event.change is not Change.DELETED:
            yield self._set("seen", True, place)
        if isinstance(event, OrganizationEvent) and event.name is not None:
            yield self._set("original_name", event.name, place, is_first=True)

    def _set(self, name: str, value: object, place: Place, *, is_first: bool = False) -> bool:
        """Set the value with the greatest place, or with ``is_first`` that with the lowest."""
        known = self.attributes.get(name)
        if known is not None and (place >= known[1] if is_first else place <= known[1]):
            return False
        self.attributes[name] = (value, place)
        return True


def organization_values(state: State, object_id: str) -> dict[str, Any] | None:
    """The values of an organization's tenant; None while only its deletion is known.

    ``slug`` is the provider's, else the organization's first name, which a new name does not change.
    """
    if "seen" not in state.attributes and "name" not in state.attributes:
        return None
    name = state.get("name") or bounded_name(object_id)
    return {
        "name": name,
        "slug": state.get("slug") or state.get("original_name") or object_id,
        "is_active": state.exists,
    }


def user_values(state: State) -> dict[str, Any] | None:
    """The values of a person's user in each tenant; None while only the deletion is known."""
    if "seen" not in state.attributes and "email" not in state.attributes:
        return None
    return {
        "email": state.get("email", ""),
        "first_name": state.get("first_name", ""),
        "last_name": state.get("last_name", ""),
        "is_active": state.exists and state.get("active", True),
    }


def verified_email(state: State) -> str | None:
    """The address of an active person that the provider has verified; None if there is none.

    That an earlier address was verified does not count.
    """
    email, verified = (state.attributes.get(name) for name in ("email", "email_verified"))
    if email is None or verified is None or not verified[0] or verified[1] < email[1]:
        return None
    values = user_values(state)
    return email[0] if values is not None and values["is_active"] else None


def membership_values(
    memberships: Iterable[State], user: State, roles: Mapping[str, str]
) -> dict[str, Any] | None:
    """The values of the membership of a user in a tenant; None while none is known.

    ``memberships`` are all that the provider had for the two: the active membership counts, else
    the newest. The deletion of the user ends a membership, even without an event of its own.
    ``role_keys`` is not a column: the names that are none of the five roles.
    """
    ended = user.ended or []
    known = [
        (state.exists and state.get("active", True) and ended <= state.place, state.place, state)
        for state in memberships
        if state.place is not None
    ]
    if not known:
        return None
    is_active, _, state = max(known, key=itemgetter(0, 1))
    return {
        "role": role_of(state, roles).value,
        "role_keys": set(_role_names(state, roles)) - set(Role),
        "is_active": is_active,
        "idp_membership_id": state.get("membership_id", ""),
    }


def role_of(state: State, roles: Mapping[str, str]) -> Role:
    """The highest of the five roles that the provider's names map to, else ``member``."""
    found = [Role(name) for name in _role_names(state, roles) if name in list(Role)]
    return max(found, key=lambda role: role.rank, default=Role.MEMBER)


def _role_names(state: State, roles: Mapping[str, str]) -> list[str]:
    """Our names for the roles that the provider says.

    ``roles`` maps the provider's names to ours. Our own names need no mapping, with or without
    Clerk's prefix ``org:``. A grant from before the membership last ended does not count.
    """
    names = [*state.get("roles", [])]
    for name, (grant, place) in state.attributes.items():
        after_the_end = state.ended is None or place > state.ended
        if name.startswith(GRANT) and grant["granted"] and after_the_end:
            names.append(grant["role"])
    return [roles.get(name, name.removeprefix("org:")) for name in names]


def invitation_values(state: State, roles: Mapping[str, str]) -> dict[str, Any] | None:
    """The values of an invitation; None while its address is not known.

    It was revoked if it was deleted before it was accepted. Without an end it ends after
    :data:`DAYS`.
    """
    email, place = state.attributes.get("email", ("", []))
    if not email:
        return None
    said, place = state.attributes.get("state", ("pending", place))
    if said != "accepted" and not state.exists:
        said, place = "revoked", state.ended or place
    said_at = EPOCH + timedelta(microseconds=place[0])
    ends_at = state.get("expires_at")
    return {
        "email": email,
        "role": role_of(state, roles).value,
        "expires_at": datetime.fromisoformat(ends_at) if ends_at else said_at + DAYS,
        "accepted_at": said_at if said == "accepted" else None,
        "revoked_at": said_at if said == "revoked" else None,
    }


def connection_values(state: State) -> dict[str, Any] | None:
    """The values of an SSO connection; None if it was deleted.

    The certificate that ends first counts. A connection is active if only a certificate of it is
    known.
    """
    if not state.exists:
        return None
    ends = [
        datetime.fromisoformat(ends_at)
        for name, (ends_at, _) in state.attributes.items()
        if name.startswith(CERTIFICATE)
    ]
    said = state.get("state", "active")
    return {
        **{name: state.get(name, "") for name in ("name", "provider", "type")},
        "state": said if said in ("active", "draft") else "inactive",
        "domains": [bounded_name(name) for name in state.get("domains", [])[:MAX_DOMAINS]],
        "certificate_ends_at": min(ends) if ends else None,
    }


def _as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
