"""Logto: users, organizations and the members of organizations.

Deletions and changes of membership carry ``data: null``; the ids stand in ``params``. A change
of membership lists the people added and removed, in newer versions only: without the lists,
only the removal of a single member can be understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
    membership_key,
)
from app.webhooks.providers.payloads import (
    Unreadable,
    Unwanted,
    email,
    flag,
    full_name,
    identifier,
    member,
    moment,
    optional_epoch,
    parse_object,
    text,
    texts,
)
from app.webhooks.providers.provider import Each, Provider, single


def adapt(body: bytes) -> Sequence[IdentityEvent]:
    """The changes in one event; https://docs.logto.io/developers/webhooks/webhooks-events lists them."""
    event = parse_object(body)
    match event.get("event"):
        case "User.Created":
            return [_user(event, Change.CREATED, member(event, "data"))]
        case "PostRegister":  # someone signed up; User.Created tells the same
            return [_user(event, Change.CREATED, member(event, "user"))]
        case "User.Data.Updated" | "User.SuspensionStatus.Updated":
            return [_user(event, Change.UPDATED, member(event, "data"))]
        case "User.Deleted":
            return [_user(event, Change.DELETED, None)]
        case "Organization.Created":
            return [_organization(event, Change.CREATED)]
        case "Organization.Data.Updated":
            return [_organization(event, Change.UPDATED)]
        case "Organization.Deleted":
            return [_organization(event, Change.DELETED)]
        case "Organization.Membership.Updated":
            return _memberships(event)
        case _:
            raise Unwanted("not about a user, an organization or its members")


def _user(event: dict[str, Any], change: Change, user: Any) -> UserEvent:
    """The change of a user. Data without the user's id, such as custom data alone, are ignored."""
    user_id = _id(event, user, "userId")
    said = user if member(user, "id") == user_id else None
    first, last = full_name(text(said, "name"))
    given, family = (text(said, "profile", part) for part in ("givenName", "familyName"))
    if given or family:
        first, last = given or "", family or ""
    suspended = flag(said, "isSuspended")
    return UserEvent(
        object_id=user_id,
        change=change,
        occurred_at=moment(event, "createdAt"),
        version=optional_epoch(said, "updatedAt"),
        email=email(said, "primaryEmail"),
        first_name=first,
        last_name=last,
        active=None if suspended is None else not suspended,
    )


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    return OrganizationEvent(
        object_id=_id(event, member(event, "data"), "id"),
        change=change,
        occurred_at=moment(event, "createdAt"),
        name=text(event, "data", "name"),
    )


def _memberships(event: dict[str, Any]) -> Sequence[IdentityEvent]:
    """One event per person added or removed."""
    if member(event, "organizationId") is not None:
        organization_id = identifier(event, "organizationId")
    else:
        organization_id = identifier(event, "params", "id")
    added, removed = texts(event, "addedUserIds"), texts(event, "removedUserIds")
    if not added and not removed:
        removed = _removed_by_route(event)
    occurred_at = moment(event, "createdAt")

    def make(item: tuple[Change, str]) -> IdentityEvent:
        change, user_id = item
        return MembershipEvent(
            object_id=membership_key(organization_id, user_id),
            change=change,
            occurred_at=occurred_at,
            organization_id=organization_id,
            user_id=user_id,
        )

    changes = ((Change.CREATED, added), (Change.DELETED, removed))
    return Each(make, [(change, user_id) for change, user_ids in changes for user_id in user_ids])


def _removed_by_route(event: dict[str, Any]) -> tuple[str, ...]:
    """The user in the path ``DELETE /organizations/:id/users/:userId``."""
    if event.get("method") == "DELETE" and member(event, "params", "userId") is not None:
        return (identifier(event, "params", "userId"),)
    if "addedUserIds" in event or "removedUserIds" in event:
        raise Unwanted("nobody was added or removed")
    raise Unreadable("the event does not list the people added and removed")


def _id(event: dict[str, Any], entity: Any, param: str) -> str:
    """The id in the path of the request that changed the object, else the object's own."""
    if member(event, "params", param) is not None:
        return identifier(event, "params", param)
    if member(entity, "id") is not None:
        return identifier(entity, "id")
    return identifier(event, "userId")


PROVIDER = Provider(
    name="logto",
    split=single(lambda event: event.get("event")),
    adapt=adapt,
)
