"""Clerk: users, organizations and organization memberships, signed by Svix.

``timestamp`` is in milliseconds or in seconds: a number below 10^11 is seconds. A deleted user or
organization has only its id, a deleted membership is the whole object. The copies of the
organization and the user in a membership are ignored, because they have their own events.
https://clerk.com/docs/webhooks/overview lists the events.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.identity_sync.events import (
    Change,
    MembershipEvent,
    OrganizationEvent,
    UserEvent,
)
from app.webhooks.providers.payloads import (
    email,
    epoch,
    flag,
    identifier,
    in_seconds,
    member,
    objects,
    optional_epoch,
    text,
)
from app.webhooks.providers.provider import Provider, lifecycle, single


def _user(event: dict[str, Any], change: Change) -> UserEvent:
    banned = flag(event, "data", "banned")
    return UserEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=_occurred_at(event, change),
        version=optional_epoch(event, "data", "updated_at"),
        email=_primary_email(event),
        first_name=text(event, "data", "first_name"),
        last_name=text(event, "data", "last_name"),
        active=None if banned is None else not banned,
    )


def _organization(event: dict[str, Any], change: Change) -> OrganizationEvent:
    return OrganizationEvent(
        object_id=identifier(event, "data", "id"),
        change=change,
        occurred_at=_occurred_at(event, change),
        version=optional_epoch(event, "data", "updated_at"),
        name=text(event, "data", "name"),
        slug=text(event, "data", "slug"),
    )


def _membership(event: dict[str, Any], change: Change) -> MembershipEvent:
    membership_id = identifier(event, "data", "id")
    role = text(event, "data", "role")
    return MembershipEvent(
        object_id=membership_id,
        change=change,
        occurred_at=_occurred_at(event, change),
        version=optional_epoch(event, "data", "updated_at"),
        membership_id=membership_id,
        organization_id=identifier(event, "data", "organization", "id"),
        user_id=identifier(event, "data", "public_user_data", "user_id"),
        roles=(role,) if role else None,
    )


def _occurred_at(event: dict[str, Any], change: Change) -> datetime:
    """A deletion whose time is in whole seconds comes after every change in that second."""
    occurred_at = epoch(event, "timestamp")
    if change is Change.DELETED and in_seconds(event["timestamp"]):
        return occurred_at + timedelta(seconds=1, microseconds=-1)
    return occurred_at


def _primary_email(event: dict[str, Any]) -> str | None:
    """The primary address, else the first one; None in a deletion."""
    if not isinstance(member(event, "data", "email_addresses"), list):
        return None
    addresses = objects(event, "data", "email_addresses")
    primary_id = member(event, "data", "primary_email_address_id")
    marked = [entry for entry in addresses if entry.get("id") == primary_id]
    chosen = (marked or addresses or [{}])[0]
    return email(chosen, "email_address") or ""


PROVIDER = Provider(
    name="clerk",
    split=single(lambda event: event.get("type")),
    adapt=lifecycle(
        "type",
        {"user": _user, "organization": _organization, "organizationMembership": _membership},
    ),
)
