"""Stytch B2B: organizations and their members, signed by Svix.

A member belongs to one organization, so each member event is about a person and about a
membership. A deletion may carry the id alone. A member whose ``status`` is ``deleted`` can be
reactivated under the same id; one that is ``invited`` or ``pending`` has no access yet.
"""

from __future__ import annotations

from typing import Any

from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
)
from app.webhooks.providers.payloads import (
    MAX_ID,
    Unwanted,
    email,
    full_name,
    identifier,
    member,
    moment,
    objects,
    optional_moment,
    parse_object,
    text,
    texts,
)
from app.webhooks.providers.provider import Provider, single

_CHANGES = {"CREATE": Change.CREATED, "UPDATE": Change.UPDATED, "DELETE": Change.DELETED}


def adapt(body: bytes) -> list[IdentityEvent]:
    """The changes in one event; https://stytch.com/docs/workspace-management/webhooks lists them."""
    event = parse_object(body)
    change = _CHANGES.get(str(event.get("action")).upper())
    match str(event.get("object_type")).lower():
        case "member" if change:
            return [_user(event, change), _membership(event, change)]
        case "organization" if change:
            return [_organization(event, change)]
        case _:
            raise Unwanted("not about a member or an organization")


def _event_type(event: dict[str, Any]) -> str:
    """The three fields in the documentation's order, such as ``direct.member.create``."""
    parts = [event.get(name) for name in ("source", "object_type", "action")]
    return ".".join(part.lower() for part in parts if isinstance(part, str))[:MAX_ID]


def _user(event: dict[str, Any], change: Change) -> UserEvent:
    first, last = full_name(text(event, "member", "name"))
    status = text(event, "member", "status")
    return UserEvent(
        object_id=identifier(event, "id"),
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(event, "member", "updated_at"),
        email=email(event, "member", "email_address"),
        first_name=first,
        last_name=last,
        active=None if status is None else status != "deleted",
    )


def _membership(event: dict[str, Any], change: Change) -> MembershipEvent:
    said = member(event, "member")
    status = text(said, "status")
    known = member(said, "organization_id") is not None
    member_id = identifier(event, "id")
    return MembershipEvent(
        object_id=member_id,
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(said, "updated_at"),
        membership_id=member_id,
        organization_id=identifier(said, "organization_id") if known else None,
        user_id=member_id,
        roles=_roles(said),
        active=None if status is None else status == "active",
    )


def _roles(said: Any) -> tuple[str, ...] | None:
    """Role ids, without the prefix ``stytch_`` of the built-in roles."""
    if not isinstance(member(said, "roles"), list):
        return None
    names = [name for role in objects(said, "roles") for name in texts(role, "role_id")]
    return tuple(name.removeprefix("stytch_") for name in names)


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    return OrganizationEvent(
        object_id=identifier(event, "id"),
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(event, "organization", "updated_at"),
        name=text(event, "organization", "organization_name"),
        slug=text(event, "organization", "organization_slug"),
    )


PROVIDER = Provider(
    name="stytch",
    split=single(_event_type, lambda event: event.get("event_id")),
    adapt=adapt,
)
