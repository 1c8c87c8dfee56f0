"""WorkOS: users, organizations and organization memberships.

Each event has the whole object. A deletion has the object's old ``updated_at``. A ``pending``
membership is an invitation, not access.
https://workos.com/docs/events lists the events.
"""

from __future__ import annotations

from app.identity_sync.events import MembershipEvent, OrganizationEvent, UserEvent
from app.inbox.providers.payloads import Document
from app.inbox.providers.provider import Facts, Provider, lifecycle


def _user(data: Document, facts: Facts) -> UserEvent:
    return UserEvent(
        **facts,
        object_id=data.identifier("id"),
        email=data.text("email"),
        email_verified=data.flag("email_verified"),
        first_name=data.text("first_name"),
        last_name=data.text("last_name"),
    )


def _organization(data: Document, facts: Facts) -> OrganizationEvent:
    return OrganizationEvent(**facts, object_id=data.identifier("id"), name=data.text("name"))


def _membership(data: Document, facts: Facts) -> MembershipEvent:
    membership_id = data.identifier("id")
    status = data.text("status")
    return MembershipEvent(
        **facts,
        object_id=membership_id,
        membership_id=membership_id,
        organization_id=data.identifier("organization_id"),
        user_id=data.identifier("user_id"),
        roles=_roles(data),
        active=None if status is None else status == "active",
    )


def _roles(data: Document) -> tuple[str, ...] | None:
    """``role`` is the first of ``roles``, which older events do not have."""
    slugs = [
        *data.texts("role", "slug"),
        *(slug for role in data.objects("roles") for slug in role.texts("slug")),
    ]
    return tuple(dict.fromkeys(slugs)) or None


PROVIDER = Provider(
    name="workos",
    event_type=lambda event: event.value("event"),
    own_id=lambda event: event.value("id"),
    prefers_own_id=True,
    adapt=lifecycle(
        "event",
        {"user": _user, "organization": _organization, "organization_membership": _membership},
        occurred_at=lambda event, _: event.moment("created_at"),
        version=lambda data: data.optional_moment("updated_at"),
    ),
)
