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
from app.inbox.providers.payloads import Document, Unwanted, full_name, parse_object
from app.inbox.providers.provider import Provider


def adapt(body: bytes) -> list[IdentityEvent]:
    """The changes in one event; https://auth0.com/docs/customize/events lists them."""
    event = parse_object(body)
    match str(event.value("type")).split("."):
        case ["user", "created" | "updated" | "deleted" as change]:
            return [_user(event, Change(change))]
        case ["organization", "created" | "updated" | "deleted" as change]:
            return [_organization(event, Change(change))]
        case ["organization", "member", "added" | "deleted" as change]:
            return [MembershipEvent(**_member(event, change))]
        case ["organization", "member", "role", "assigned" | "deleted" as change]:
            role = event.at("data", "object", "role")
            role_id, name = role.identifier("id"), role.identifier("name")
            return [RoleGrantEvent(**_member(event, change), role_id=role_id, role=name)]
        case _:
            raise Unwanted("not about a user, an organization or a member")


def _user(event: Document, change: Change) -> UserEvent:
    """Without given and family name the full name is split, unless it is the e-mail address."""
    user = event.at("data", "object")
    name, mail = user.text("name"), user.text("email")
    first, last = full_name("" if name == mail else name)
    given, family = user.text("given_name"), user.text("family_name")
    if given or family:
        first, last = given or "", family or ""
    return UserEvent(
        object_id=user.identifier("user_id"),
        change=change,
        occurred_at=user.optional_moment("deleted_at") or event.moment("time"),
        version=user.optional_moment("updated_at"),
        email=mail,
        email_verified=user.flag("email_verified"),
        first_name=first,
        last_name=last,
        active=None if change is Change.DELETED else user.value("blocked") is not True,
    )


def _organization(event: Document, change: Change) -> OrganizationEvent:
    """Auth0's ``name`` is the slug of other providers."""
    organization = event.at("data", "object")
    slug = organization.text("name")
    return OrganizationEvent(
        object_id=organization.identifier("id"),
        change=change,
        occurred_at=event.moment("time"),
        name=organization.text("display_name") or slug,
        slug=slug,
    )


def _member(event: Document, change: str) -> dict[str, Any]:
    """The change that an event of a membership or of its roles describes."""
    member = event.at("data", "object")
    organization_id = member.identifier("organization", "id")
    user_id = member.identifier("user", "user_id")
    return {
        "object_id": membership_key(organization_id, user_id),
        "change": Change.DELETED if change == "deleted" else Change.CREATED,
        "occurred_at": event.moment("time"),
        "organization_id": organization_id,
        "user_id": user_id,
    }


PROVIDER = Provider(
    name="auth0", own_id=lambda event: event.value("id"), prefers_own_id=True, adapt=adapt
)
