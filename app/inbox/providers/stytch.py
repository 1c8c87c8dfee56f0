"""Stytch B2B: organizations and their members, signed by Svix.

A member belongs to one organization, so each member event is about a person and about a membership.
A deletion may carry the id alone. A member whose ``status`` is ``deleted`` can be reactivated under
the same id; an ``invited`` or ``pending`` member has no access yet.
"""

from __future__ import annotations

from app.identity_sync.events import (
    Change,
    IdentityEvent,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
)
from app.inbox.providers.payloads import Document, Unwanted, full_name, parse_object
from app.inbox.providers.provider import Provider

_CHANGES = {"CREATE": Change.CREATED, "UPDATE": Change.UPDATED, "DELETE": Change.DELETED}


def adapt(body: bytes) -> list[IdentityEvent]:
    """The changes in one event; https://stytch.com/docs/workspace-management/webhooks lists them."""
    event = parse_object(body)
    change = _CHANGES.get(str(event.value("action")).upper())
    match str(event.value("object_type")).lower():
        case "member" if change:
            return [_user(event, change), _membership(event, change)]
        case "organization" if change:
            return [_organization(event, change)]
        case _:
            raise Unwanted("not about a member or an organization")


def _event_type(event: Document) -> str:
    """The three fields in the documentation's order, such as ``direct.member.create``."""
    parts = [event.value(name) for name in ("source", "object_type", "action")]
    return ".".join(part.lower() for part in parts if isinstance(part, str))


def _user(event: Document, change: Change) -> UserEvent:
    member = event.at("member")
    first, last = full_name(member.text("name"))
    status = member.text("status")
    return UserEvent(
        object_id=event.identifier("id"),
        change=change,
        occurred_at=event.moment("timestamp"),
        version=member.optional_moment("updated_at"),
        email=member.text("email_address"),
        email_verified=member.flag("email_address_verified"),
        first_name=first,
        last_name=last,
        active=None if status is None else status != "deleted",
    )


def _membership(event: Document, change: Change) -> MembershipEvent:
    member = event.at("member")
    status = member.text("status")
    member_id = event.identifier("id")
    return MembershipEvent(
        object_id=member_id,
        change=change,
        occurred_at=event.moment("timestamp"),
        version=member.optional_moment("updated_at"),
        membership_id=member_id,
        organization_id=member.optional_identifier("organization_id"),
        user_id=member_id,
        roles=_roles(member),
        active=None if status is None else status == "active",
    )


def _roles(member: Document) -> tuple[str, ...] | None:
    """Role ids, without the prefix ``stytch_`` of the built-in roles."""
    if not isinstance(member.value("roles"), list):
        return None
    names = [name for role in member.objects("roles") for name in role.texts("role_id")]
    return tuple(name.removeprefix("stytch_") for name in names)


def _organization(event: Document, change: Change) -> OrganizationEvent:
    organization = event.at("organization")
    return OrganizationEvent(
        object_id=event.identifier("id"),
        change=change,
        occurred_at=event.moment("timestamp"),
        version=organization.optional_moment("updated_at"),
        name=organization.text("organization_name"),
        slug=organization.text("organization_slug"),
    )


PROVIDER = Provider(
    name="stytch", event_type=_event_type, own_id=lambda event: event.value("event_id"), adapt=adapt
)
