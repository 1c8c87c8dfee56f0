"""Auth0 event streams (CloudEvents): users, organizations, members and their roles.

Organizations and members have no time of their own, so the envelope's ``time`` counts. Each role
of a member has its own events.
"""

from __future__ import annotations

from typing import Any

from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    RoleGrantEvent,
    UserEvent,
    membership_key,
)
from app.webhooks.providers.payloads import (
    Unwanted,
    email,
    full_name,
    identifier,
    member,
    moment,
    optional_moment,
    parse_object,
    text,
)
from app.webhooks.providers.provider import Provider, single

_OBJECT = ("data", "object")


def adapt(body: bytes) -> list[IdentityEvent]:
    """The changes in one event; https://auth0.com/docs/customize/events lists them."""
    event = parse_object(body)
    match str(event.get("type")).split("."):
        case ["user", "created" | "updated" | "deleted" as change]:
            return [_user(event, Change(change))]
        case ["organization", "created" | "updated" | "deleted" as change]:
            return [_organization(event, Change(change))]
        case ["organization", "member", "added"]:
            return [_membership(event, Change.CREATED)]
        case ["organization", "member", "deleted"]:
            return [_membership(event, Change.DELETED)]
        case ["organization", "member", "role", "assigned"]:
            return [_role_grant(event, Change.CREATED)]
        case ["organization", "member", "role", "deleted"]:
            return [_role_grant(event, Change.DELETED)]
        case _:
            raise Unwanted("not about a user, an organization or a member")


def _user(event: dict[str, Any], change: Change) -> UserEvent:
    """Without given and family name the full name is split, unless it is the e-mail address."""
    name = text(event, *_OBJECT, "name")
    mail = email(event, *_OBJECT, "email")
    first, last = full_name("" if name == mail else name)
    given, family = (text(event, *_OBJECT, part) for part in ("given_name", "family_name"))
    if given or family:
        first, last = given or "", family or ""
    deleted_at = optional_moment(event, *_OBJECT, "deleted_at")
    return UserEvent(
        object_id=identifier(event, *_OBJECT, "user_id"),
        change=change,
        occurred_at=deleted_at or moment(event, "time"),
        version=optional_moment(event, *_OBJECT, "updated_at"),
        email=mail,
        first_name=first,
        last_name=last,
        active=None if change is Change.DELETED else member(event, *_OBJECT, "blocked") is not True,
    )


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    """Auth0's ``name`` is the slug of other providers."""
    slug = text(event, *_OBJECT, "name")
    return OrganizationEvent(
        object_id=identifier(event, *_OBJECT, "id"),
        change=change,
        occurred_at=moment(event, "time"),
        name=text(event, *_OBJECT, "display_name") or slug,
        slug=slug,
    )


def _membership(event: dict[str, Any], change: Change) -> MembershipEvent:
    organization_id = identifier(event, *_OBJECT, "organization", "id")
    user_id = identifier(event, *_OBJECT, "user", "user_id")
    return MembershipEvent(
        object_id=membership_key(organization_id, user_id),
        change=change,
        occurred_at=moment(event, "time"),
        organization_id=organization_id,
        user_id=user_id,
    )


def _role_grant(event: dict[str, Any], change: Change) -> RoleGrantEvent:
    organization_id = identifier(event, *_OBJECT, "organization", "id")
    user_id = identifier(event, *_OBJECT, "user", "user_id")
    return RoleGrantEvent(
        object_id=membership_key(organization_id, user_id),
        change=change,
        occurred_at=moment(event, "time"),
        organization_id=organization_id,
        user_id=user_id,
        role_id=identifier(event, *_OBJECT, "role", "id"),
        role=identifier(event, *_OBJECT, "role", "name"),
    )


PROVIDER = Provider(
    name="auth0",
    split=single(
        lambda event: event.get("type"), lambda event: event.get("id"), prefer_message_id=False
    ),
    adapt=adapt,
)
