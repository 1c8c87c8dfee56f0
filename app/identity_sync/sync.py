"""From identity events to rows: the steps of applying one delivery.

Lock and load the objects that its events are about, merge the events into their states, write the
rows that follow from the states, save the objects. An event writes only what it changes: what a
provider merely repeats does not undo a change made here. Rows are never deleted; ``is_active``
ends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from sqlalchemy import bindparam, func, select

from app.core.actors import SYSTEM_IDP
from app.core.db import tenancy
from app.core.db.statements import Statement
from app.domains.joining import Newcomer, admit, withdraw
from app.identity_sync.apply import write
from app.identity_sync.events import (
    ConnectionEvent,
    IdentityEvent,
    InvitationEvent,
    MembershipEvent,
    OrganizationEvent,
    RoleGrantEvent,
    UserEvent,
    storable,
)
from app.identity_sync.merge_state import verified_email
from app.identity_sync.mirrors import write_mirrored
from app.identity_sync.models import IdentityObject
from app.identity_sync.store import Key, Kind, Objects, Pair, pair_of
from app.tenants.models import Tenant

FIND_WAITING = Statement(
    "identity_objects.find_waiting",
    select(IdentityObject.source, IdentityObject.kind, IdentityObject.object_id)
    .join(Tenant, Tenant.idp_org_id == IdentityObject.organization_id)
    .where(IdentityObject.is_waiting)
    .order_by(func.random())  # one that fails does not keep others from their turn
    .limit(bindparam("limit")),
)
KINDS: dict[type[IdentityEvent], Kind] = {
    OrganizationEvent: Kind.ORGANIZATION,
    UserEvent: Kind.USER,
    MembershipEvent: Kind.MEMBERSHIP,
    RoleGrantEvent: Kind.MEMBERSHIP,
    InvitationEvent: Kind.INVITATION,
    ConnectionEvent: Kind.SSO_CONNECTION,
}


class Outcome(StrEnum):
    """The outcome of a delivery, as a sentence for operators."""

    APPLIED = ""
    WAITING = "kept until the organization and the user are known"
    WAITING_ORGANIZATION = "kept until the organization is known"
    STALE = "stale: something newer is known"
    DELETED = "the tenant of this organization was deleted"


def apply(
    events: Sequence[IdentityEvent],
    *,
    source: str,
    event_id: str,
    roles: Mapping[str, str],
    force: bool = False,
) -> Outcome:
    """Apply the events of one delivery, in the current transaction and in the platform's scope.

    ``event_id`` decides which of two events of the same moment counts. ``roles`` maps the
    provider's role names to ours. ``force`` writes all that the provider says about the objects.
    Events of an organization whose tenant was deleted are not applied; if the delivery is about no
    other organization, neither are its events of people.
    """
    objects = Objects(source)
    named = {id_ for event in events if (id_ := _organization_of(event)) is not None}
    pairs_named = [pair for event in events if (pair := _named_pair(event))]
    deleted = objects.take(map(key_of, events), pairs_named, named)
    if deleted and deleted == named:
        return Outcome.DELETED
    events = [storable(event) for event in events if _organization_of(event) not in deleted]
    changed = [event for event in events if objects.now[key_of(event)].merge(event, event_id)]
    if not changed and not force:
        return Outcome.STALE
    objects.changed.update(map(key_of, changed))
    pairs = _affected_pairs(objects, events)
    waiting = write(
        objects,
        pairs,
        organization_ids=_ids(events, OrganizationEvent),
        user_ids=_ids(events, UserEvent),
        roles=roles,
        force=force,
    )
    homeless = write_mirrored(objects, roles=roles, force=force)
    objects.save()
    user_ids = _ids(events if force else changed, UserEvent)
    withdraw([id_ for id_ in user_ids if _has_lost_address(objects, Key(Kind.USER, id_))])
    admit(_people(objects, user_ids), actor=SYSTEM_IDP)
    if not homeless.isdisjoint(map(key_of, events)):
        return Outcome.WAITING_ORGANIZATION
    own_pairs = {_pair_of(event, objects) for event in events}
    return Outcome.APPLIED if waiting.isdisjoint(own_pairs) else Outcome.WAITING


def apply_waiting(source: str, kind: str, object_id: str, *, roles: Mapping[str, str]) -> None:
    """Apply a waiting object if its tenant, and a membership's user, exist now."""
    tenancy.enter(tenancy.PLATFORM)
    objects, key = Objects(source), Key(Kind(kind), object_id)
    objects.take([key])
    pair = pair_of(objects.now[key])
    if pair is not None:
        objects.take([], [pair])
        write(objects, [pair], roles=roles)
    write_mirrored(objects, roles=roles)
    objects.save()


def _has_lost_address(objects: Objects, key: Key) -> bool:
    """Whether the events have changed or removed the user's verified address."""
    before = verified_email(objects.before[key])
    return before not in (None, verified_email(objects.now[key]))


def _people(objects: Objects, user_ids: Iterable[str]) -> Iterator[Newcomer]:
    """Those of the users who have a verified address."""
    for user_id in user_ids:
        state = objects.now[Key(Kind.USER, user_id)]
        if email := verified_email(state):
            names = state.get("first_name", ""), state.get("last_name", "")
            yield Newcomer(user_id, email, *names)


def key_of(event: IdentityEvent) -> Key:
    return Key(KINDS[type(event)], event.object_id)


def _affected_pairs(objects: Objects, events: Sequence[IdentityEvent]) -> list[Pair]:
    """The pairs whose rows may change: all of the users with an event, and the memberships' own.

    An event of a membership may name neither; its objects are loaded once the membership is.
    """
    user_ids = _ids(events, UserEvent)
    pairs = [
        *(pair for pair in objects.connections() if pair.user_id in user_ids),
        *(pair for event in events if (pair := _pair_of(event, objects)) is not None),
    ]
    unknown = [pair for pair in pairs if Key(Kind.USER, pair.user_id) not in objects.now]
    if unknown:
        objects.take([], unknown)
    return pairs


def _named_pair(event: IdentityEvent) -> Pair | None:
    """The organization and the user that a membership's event names."""
    if isinstance(event, MembershipEvent | RoleGrantEvent) and (
        event.organization_id and event.user_id
    ):
        return Pair(event.organization_id, event.user_id)
    return None


def _organization_of(event: IdentityEvent) -> str | None:
    match event:
        case OrganizationEvent():
            return event.object_id
        case MembershipEvent() | RoleGrantEvent() | InvitationEvent() | ConnectionEvent():
            return event.organization_id
    return None


def _pair_of(event: IdentityEvent, objects: Objects) -> Pair | None:
    """As :func:`_named_pair`; what the event does not name is taken from earlier events."""
    if KINDS[type(event)] is not Kind.MEMBERSHIP:
        return None
    return _named_pair(event) or pair_of(objects.now[key_of(event)])


def _ids(events: Iterable[IdentityEvent], kind: type[IdentityEvent]) -> list[str]:
    return list(dict.fromkeys(event.object_id for event in events if isinstance(event, kind)))
