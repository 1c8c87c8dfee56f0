"""Logto: users, organizations and the members of organizations.

Deletions and changes of membership carry ``data: null``; the ids stand in ``params``. A change
of membership lists the people added and removed, in newer versions only: without the lists,
only the removal of a single member can be understood.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
    membership_key,
)
from app.inbox.providers.payloads import Document, Unreadable, Unwanted, full_name, parse_object
from app.inbox.providers.provider import Each, Provider


def adapt(body: bytes) -> Sequence[IdentityEvent]:
    """The changes in one event; https://docs.logto.io/developers/webhooks/webhooks-events lists them."""
    event = parse_object(body)
    data = event.at("data")
    match event.value("event"):
        case "User.Created":
            return [_user(event, Change.CREATED, data)]
        case "PostRegister":  # someone signed up; User.Created says the same
            return [_user(event, Change.CREATED, event.at("user"))]
        case "User.Data.Updated" | "User.SuspensionStatus.Updated":
            return [_user(event, Change.UPDATED, data)]
        case "User.Deleted":
            return [_user(event, Change.DELETED, Document(None))]
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


def _user(event: Document, change: Change, user: Document) -> UserEvent:
    """The change of a user. Data without the user's id, such as custom data alone, are ignored.

    A primary address is verified: Logto's own ``email_verified`` claim is true for each.
    """
    user_id = _id(event, user, "userId")
    if user.value("id") != user_id:
        user = Document(None)
    first, last = full_name(user.text("name"))
    given, family = user.text("profile", "givenName"), user.text("profile", "familyName")
    if given or family:
        first, last = given or "", family or ""
    suspended = user.flag("isSuspended")
    return UserEvent(
        object_id=user_id,
        change=change,
        occurred_at=event.moment("createdAt"),
        version=user.optional_epoch("updatedAt"),
        email=user.text("primaryEmail"),
        email_verified=bool(user.text("primaryEmail")) or None,
        first_name=first,
        last_name=last,
        active=None if suspended is None else not suspended,
    )


def _organization(event: Document, change: Change) -> OrganizationEvent:
    organization = event.at("data")
    return OrganizationEvent(
        object_id=_id(event, organization, "id"),
        change=change,
        occurred_at=event.moment("createdAt"),
        name=organization.text("name"),
    )


def _memberships(event: Document) -> Sequence[IdentityEvent]:
    """One event per person added or removed."""
    if event.has("organizationId"):
        organization_id = event.identifier("organizationId")
    else:
        organization_id = event.identifier("params", "id")
    added, removed = event.texts("addedUserIds"), event.texts("removedUserIds")
    if not added and not removed:
        removed = _removed_by_route(event)
    occurred_at = event.moment("createdAt")

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


def _removed_by_route(event: Document) -> tuple[str, ...]:
    """The user in the path ``DELETE /organizations/:id/users/:userId``."""
    if event.value("method") == "DELETE" and event.has("params", "userId"):
        return (event.identifier("params", "userId"),)
    if event.members().keys() & {"addedUserIds", "removedUserIds"}:
        raise Unwanted("nobody was added or removed")
    raise Unreadable("the event does not list the people added and removed")


def _id(event: Document, entity: Document, param: str) -> str:
    """The id in the path of the request that changed the object, else the object's own."""
    if event.has("params", param):
        return event.identifier("params", param)
    if entity.has("id"):
        return entity.identifier("id")
    return event.identifier("userId")


PROVIDER = Provider(name="logto", event_type=lambda event: event.value("event"), adapt=adapt)
