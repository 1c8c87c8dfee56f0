"""From identity events to tenants, users and memberships.

A delivery's events are merged into the objects they are about; where that changes what an object
says, the rows that show it follow. Only what the provider changed is written: what it merely
repeats does not undo a change made here. Rows are ended by ``is_active``, never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from app.extensions import db
from app.identity_sync.apply import Projection
from app.identity_sync.events import (
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    RoleGrantEvent,
    UserEvent,
)
from app.identity_sync.store import Key, Kind, Objects, Pair, pair_of
from app.tenants.models import Tenant
from app.webhooks.models import IdentityObject

WAITING_AT_ONCE = 200

_KINDS: dict[type[IdentityEvent], Kind] = {
    OrganizationEvent: Kind.ORGANIZATION,
    UserEvent: Kind.USER,
    MembershipEvent: Kind.MEMBERSHIP,
    RoleGrantEvent: Kind.MEMBERSHIP,
}


@dataclass(frozen=True)
class Outcome:
    """What a delivery did: ``changed`` anything, or left something ``waiting`` for its other half."""

    changed: bool
    waiting: bool


def apply(
    events: Sequence[IdentityEvent],
    *,
    source: str,
    event_id: str,
    roles: Mapping[str, str],
    force: bool = False,
) -> Outcome:
    """Apply the events of one delivery, in the current transaction.

    ``event_id`` settles which of two events of one moment counts. ``roles`` maps the provider's
    role names to ours. ``force`` writes what the provider says even where it says nothing new.
    """
    objects = Objects(source)
    pairs = _lock_and_load(objects, events)
    changed = [event for event in events if _merge(objects, event, event_id)]
    if not changed and not force:
        return Outcome(changed=False, waiting=False)
    projection = Projection(objects, roles, force=force)
    for organization_id in _ids(events, OrganizationEvent):
        if projection.show_organization(organization_id):
            pairs += objects.memberships_of_organization(organization_id)
    pairs += [pair for event in events if (pair := _connected(objects, event)) is not None]
    waiting = projection.show_pairs(pairs)
    for user_id in _ids(events, UserEvent):
        projection.show_user(user_id)
    objects.mark_waiting(pairs, waiting)
    objects.save()
    return Outcome(changed=True, waiting=bool(waiting))


def waiting_memberships() -> Sequence[tuple[str, str]]:
    """Source and id of waiting memberships whose tenant has come, though not by an event."""
    statement = (
        select(IdentityObject.source, IdentityObject.object_id)
        .join(Tenant, Tenant.idp_org_id == IdentityObject.organization_id)
        .where(IdentityObject.is_waiting)
        .order_by(IdentityObject.updated_at)
        .limit(WAITING_AT_ONCE)
    )
    return [(source, object_id) for source, object_id in db.session.execute(statement)]


def show_again(source: str, object_id: str, *, roles: Mapping[str, str]) -> None:
    """Show a membership that had to wait, if what it needs is there now."""
    objects = Objects(source)
    key = Key(Kind.MEMBERSHIP, object_id)
    objects.lock([key])
    objects.load([key])
    pair = pair_of(objects.now[key])
    if pair is None:
        return
    objects.lock([Key(Kind.USER, pair.user_id)])
    objects.memberships_of_pairs([pair])
    objects.lock([Key(Kind.ORGANIZATION, pair.organization_id)], shared=True)
    waiting = Projection(objects, roles, force=False).show_pairs([pair])
    objects.mark_waiting([pair], waiting)
    objects.mark_changed(key)  # one that goes on waiting goes behind the others
    objects.save()


def _lock_and_load(objects: Objects, events: Sequence[IdentityEvent]) -> list[Pair]:
    """Lock and read what the events are about; the pairs that their users are part of."""
    memberships = [key_of(event) for event in events if key_of(event).kind is Kind.MEMBERSHIP]
    objects.lock(memberships)
    objects.load(memberships)
    pairs = [pair for event in events if (pair := _connected(objects, event)) is not None]
    user_ids = {*_ids(events, UserEvent), *(pair.user_id for pair in pairs)}
    objects.lock(Key(Kind.USER, user_id) for user_id in user_ids)
    objects.load([Key(Kind.USER, user_id) for user_id in user_ids])
    of_users: list[Pair] = []
    for user_id in _ids(events, UserEvent):
        of_users += objects.memberships_of_user(user_id)
    objects.memberships_of_pairs(pairs)
    shared = {pair.organization_id for pair in [*pairs, *of_users]}
    objects.lock((Key(Kind.ORGANIZATION, id_) for id_ in shared), shared=True)
    alone = [Key(Kind.ORGANIZATION, id_) for id_ in _ids(events, OrganizationEvent)]
    objects.lock(alone)
    objects.load(alone)
    return of_users


def _merge(objects: Objects, event: IdentityEvent, event_id: str) -> bool:
    key = key_of(event)
    changed = objects.now[key].merge(event, event_id)
    if changed:
        objects.mark_changed(key)
    return changed


def _connected(objects: Objects, event: IdentityEvent) -> Pair | None:
    """What a membership's event connects: as it says, else as was said before."""
    if not isinstance(event, MembershipEvent | RoleGrantEvent):
        return None
    if event.organization_id and event.user_id:
        return Pair(event.organization_id, event.user_id)
    return pair_of(objects.now[key_of(event)])


def _ids(events: Iterable[IdentityEvent], kind: type[IdentityEvent]) -> list[str]:
    return list(dict.fromkeys(event.object_id for event in events if isinstance(event, kind)))


def key_of(event: IdentityEvent) -> Key:
    """The object that an event is about."""
    return Key(_KINDS[type(event)], event.object_id)
