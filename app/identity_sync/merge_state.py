"""What a set of identity events says, whatever order it came in: registers that only move forward.

Each attribute of an object keeps the value of the greatest place, a place being the event's
position and, last, its id. Whether the object exists is such a register too, so a deletion is a
tombstone for everything before it and a later re-creation counts. Nothing here touches the
database; what the registers say is a pure function of the set of events merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from app.auth.permissions import Role
from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    RoleGrantEvent,
    UserEvent,
)

Place = list[Any]
"""Version, rank, event time, event id: compared in this order."""

DEFAULT_ROLE = Role.MEMBER
_GRANT = "grant:"
_ATTRIBUTES: dict[type[IdentityEvent], tuple[str, ...]] = {
    OrganizationEvent: ("name", "slug"),
    UserEvent: ("email", "first_name", "last_name", "active"),
    MembershipEvent: ("membership_id", "organization_id", "user_id", "roles", "active"),
}


@dataclass
class State:
    """What is known of one object.

    ``place`` and ``exists``: the newest word on its existence. ``ended``: the newest deletion.
    ``attributes``: name -> value and place; ``seen`` is there once anything but a deletion came.
    """

    place: Place | None = None
    exists: bool = False
    ended: Place | None = None
    attributes: dict[str, tuple[Any, Place]] = field(default_factory=dict)

    def copy(self) -> State:
        """A state that further merges into this one leave alone."""
        return replace(self, attributes=dict(self.attributes))

    def as_json(self) -> dict[str, Any]:
        """For storing; :meth:`from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> State:
        """The state as it was stored."""
        attributes = {name: (value, place) for name, (value, place) in stored["attributes"].items()}
        return cls(stored["place"], stored["exists"], stored["ended"], attributes)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return self.attributes[name][0] if name in self.attributes else default

    def merge(self, event: IdentityEvent, event_id: str) -> bool:
        """Take over what is new in ``event``; whether anything was."""
        place = [*event.position, event_id]
        if isinstance(event, RoleGrantEvent):
            granted = {"role": event.role, "granted": event.change is Change.CREATED}
            return self._set(_GRANT + event.role_id, granted, place)
        return any([self._exist(event.change, place), *self._say(event, place)])

    def _exist(self, change: Change, place: Place) -> bool:
        moved = False
        if self.place is None or place > self.place:
            self.place, self.exists = place, change is not Change.DELETED
            moved = True
        if change is Change.DELETED and (self.ended is None or place > self.ended):
            self.ended = place
            moved = True
        return moved

    def _say(self, event: IdentityEvent, place: Place) -> Iterator[bool]:
        for name in _ATTRIBUTES[type(event)]:
            value = getattr(event, name)
            if value is not None:
                yield self._set(name, list(value) if isinstance(value, tuple) else value, place)
        if event.change is not Change.DELETED:
            yield self._set("seen", True, place)
        if isinstance(event, OrganizationEvent) and event.name is not None:
            yield self._set_first("original_name", event.name, place)

    def _set(self, name: str, value: Any, place: Place) -> bool:
        known = self.attributes.get(name)
        if known is not None and place <= known[1]:
            return False
        self.attributes[name] = (value, place)
        return True

    def _set_first(self, name: str, value: Any, place: Place) -> bool:
        """Keep the value of the lowest place instead: it never changes once all came."""
        known = self.attributes.get(name)
        if known is not None and place >= known[1]:
            return False
        self.attributes[name] = (value, place)
        return True


def organization_values(state: State, object_id: str) -> dict[str, Any] | None:
    """The tenant that an organization is; None while only its deletion is known.

    ``slug`` is the provider's, else what the first known name gives: renaming keeps it.
    """
    if "seen" not in state.attributes and "name" not in state.attributes:
        return None
    name = state.get("name") or object_id
    return {
        "name": name,
        "slug": state.get("slug") or state.get("original_name") or object_id,
        "is_active": state.exists,
    }


def user_values(state: State) -> dict[str, Any] | None:
    """The user that a person is in each tenant; None while only the deletion is known."""
    if "seen" not in state.attributes and "email" not in state.attributes:
        return None
    return {
        "email": state.get("email", ""),
        "first_name": state.get("first_name", ""),
        "last_name": state.get("last_name", ""),
        "is_active": state.exists and state.get("active", True),
    }


def membership_values(
    memberships: Iterable[State], user: State | None, roles: Mapping[str, str]
) -> dict[str, Any] | None:
    """The membership of one user in one tenant, out of all that the provider had for the two.

    One that ended with the person is over even where the provider does not say so; of several
    the one that holds counts, else the newest. None while none is known.
    """
    known = [state for state in memberships if state.place is not None]
    if not known:
        return None
    holds, _, state = max(
        ((_holds(state, user), state.place or [], state) for state in known),
        key=lambda entry: entry[:2],
    )
    return {
        "role": role_of(state, roles).value,
        "is_active": holds,
        "idp_membership_id": state.get("membership_id", ""),
    }


def role_of(state: State, roles: Mapping[str, str]) -> Role:
    """The highest of our roles that the provider's names stand for, else ``member``.

    ``roles`` maps the provider's names to ours; a name that is one of ours needs no mapping,
    nor does one behind Clerk's ``org:``. A grant made before the membership last ended is over.
    """
    names = [*state.get("roles", [])]
    for name, (grant, place) in state.attributes.items():
        after_the_end = state.ended is None or place > state.ended
        if name.startswith(_GRANT) and grant["granted"] and after_the_end:
            names.append(grant["role"])
    found = [role for name in names if (role := _own_role(name, roles)) is not None]
    return max(found, key=lambda role: role.rank, default=DEFAULT_ROLE)


def _own_role(name: str, roles: Mapping[str, str]) -> Role | None:
    own = roles.get(name, name.removeprefix("org:"))
    return Role(own) if own in list(Role) else None


def _holds(state: State, user: State | None) -> bool:
    ended_with_user = (
        user is not None
        and user.ended is not None
        and state.place is not None
        and user.ended > state.place
    )
    return state.exists and state.get("active", True) and not ended_with_user
