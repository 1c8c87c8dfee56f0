"""WorkOS: users, organizations and organization memberships.

Each event has the whole object. A deletion has the object's old ``updated_at``. A ``pending``
membership is an invitation, not access.
https://workos.com/docs/events lists the events.
"""

from __future__ import annotations

from typing import Any

from app.identity_sync.events import (
    Change,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
)
from app.webhooks.providers.payloads import (
    email,
    identifier,
    moment,
    objects,
    optional_moment,
    text,
    texts,
)
from app.webhooks.providers.provider import Provider, lifecycle, single


def _user(event: dict[str, Any], change: Change) -> UserEvent:
    return UserEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=moment(event, "created_at"),
        version=optional_moment(event, "data", "updated_at"),
        email=email(event, "data", "email"),
        first_name=text(event, "data", "first_name"),
        last_name=text(event, "data", "last_name"),
    )


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    return OrganizationEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=moment(event, "created_at"),
        version=optional_moment(event, "data", "updated_at"),
        name=text(event, "data", "name"),
    )


def _membership(event: dict[str, Any], change: Change) -> MembershipEvent:
    membership_id = identifier(event, "data", "id")
    status = text(event, "data", "status")
    return MembershipEvent(
        object_id=membership_id,
        change=change,
        occurred_at=moment(event, "created_at"),
        version=optional_moment(event, "data", "updated_at"),
        membership_id=membership_id,
        organization_id=identifier(event, "data", "organization_id"),
        user_id=identifier(event, "data", "user_id"),
        roles=_roles(event),
        active=None if status is None else status == "active",
    )


def _roles(event: dict[str, Any]) -> tuple[str, ...] | None:
    """``role`` is the first of ``roles``, which older events do not have."""
    slugs = [
        *texts(event, "data", "role", "slug"),
        *(slug for role in objects(event, "data", "roles") for slug in texts(role, "slug")),
    ]
    return tuple(dict.fromkeys(slugs)) or None


PROVIDER = Provider(
    name="workos",
    split=single(
        lambda event: event.get("event"), lambda event: event.get("id"), prefer_message_id=False
    ),
    adapt=lifecycle(
        "event",
        {"user": _user, "organization": _organization, "organization_membership": _membership},
    ),
)
