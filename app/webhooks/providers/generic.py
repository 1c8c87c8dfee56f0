"""The generic form of identity events, for providers without a module here.

The payload is the one that Standard Webhooks recommends::

    {"type": "user.updated", "timestamp": "2026-01-05T09:45:05.123Z", "data": {"id": "u1", …}}

``type`` is ``organization``, ``user`` or ``membership`` (``organization_membership`` too), a
dot, and ``created``, ``updated`` or ``deleted``; any other type is ignored. ``timestamp`` (ISO
8601) is when it happened and ``data.updated_at``, where given, when the object last changed: of
two events of one object the later one counts, in whatever order they arrive. ``data`` holds
what is known; a member that is missing is left as it was, null empties it:

===============  ==================================================================
``organization`` ``id``; ``name``, ``slug``
``user``         ``id``; ``email``, ``first_name``, ``last_name`` (or ``name``),
                 ``active`` (false: suspended)
``membership``   ``organization_id`` and ``user_id``, or ``id`` where memberships have
                 ids (the two others once, in any event); ``role`` or ``roles``,
                 ``active`` (false: invited or paused)
===============  ==================================================================

A deletion needs the ids only. Deliveries are told apart by the ``webhook-id`` header, else by
``id`` beside ``type``, else by the body's digest.
"""

from __future__ import annotations

from typing import Any

from app.identity_sync.events import (
    Change,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
    membership_key,
)
from app.webhooks.providers.payloads import (
    email,
    flag,
    full_name,
    identifier,
    member,
    moment,
    optional_moment,
    text,
    texts,
)
from app.webhooks.providers.provider import Provider, lifecycle, single


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    return OrganizationEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(event, "data", "updated_at"),
        name=text(event, "data", "name"),
        slug=text(event, "data", "slug"),
    )


def _user(event: dict[str, Any], change: Change) -> UserEvent:
    first, last = full_name(text(event, "data", "name"))
    given, family = (text(event, "data", part) for part in ("first_name", "last_name"))
    if given is not None or family is not None:
        first, last = given, family
    return UserEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(event, "data", "updated_at"),
        email=email(event, "data", "email"),
        first_name=first,
        last_name=last,
        active=flag(event, "data", "active"),
    )


def _membership(event: dict[str, Any], change: Change) -> MembershipEvent:
    membership_id = _optional_id(event, "id")
    if membership_id:
        object_id = membership_id
        organization_id = _optional_id(event, "organization_id")
        user_id = _optional_id(event, "user_id")
    else:
        organization_id = identifier(event, "data", "organization_id")
        user_id = identifier(event, "data", "user_id")
        object_id = membership_key(organization_id, user_id)
    return MembershipEvent(
        object_id=object_id,
        change=change,
        occurred_at=moment(event, "timestamp"),
        version=optional_moment(event, "data", "updated_at"),
        membership_id=membership_id or "",
        organization_id=organization_id,
        user_id=user_id,
        roles=(*texts(event, "data", "role"), *texts(event, "data", "roles")) or None,
        active=flag(event, "data", "active"),
    )


def _optional_id(event: dict[str, Any], name: str) -> str | None:
    return identifier(event, "data", name) if member(event, "data", name) is not None else None


PROVIDER = Provider(
    name="generic",
    split=single(lambda event: event.get("type"), lambda event: event.get("id")),
    adapt=lifecycle(
        "type",
        {
            "organization": _organization,
            "user": _user,
            "membership": _membership,
            "organization_membership": _membership,
        },
    ),
)
