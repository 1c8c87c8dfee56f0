"""Clerk: users, organizations, their memberships and invitations, signed by Svix.

``timestamp`` is in milliseconds or in seconds: a number below 10^11 is seconds. A deleted user or
organization has only its id, a deleted membership is the whole object. The copies of the
organization and the user in a membership are ignored, because they have their own events.
https://clerk.com/docs/webhooks/overview lists the events.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from app.identity_sync.events import Change, MembershipEvent, UserEvent
from app.inbox.providers.payloads import Document, in_seconds
from app.inbox.providers.provider import Facts, Provider, invitation, lifecycle, organization


def _user(data: Document, facts: Facts) -> UserEvent:
    banned = data.flag("banned")
    primary = _primary_address(data)
    return UserEvent(
        **facts,
        object_id=data.identifier("id"),
        email=None if primary is None else primary.text("email_address") or "",
        email_verified=None if primary is None else _is_verified(primary),
        first_name=data.text("first_name"),
        last_name=data.text("last_name"),
        active=None if banned is None else not banned,
    )


def _membership(data: Document, facts: Facts) -> MembershipEvent:
    membership_id = data.identifier("id")
    role = data.text("role")
    return MembershipEvent(
        **facts,
        object_id=membership_id,
        membership_id=membership_id,
        organization_id=data.identifier("organization", "id"),
        user_id=data.identifier("public_user_data", "user_id"),
        roles=(role,) if role else None,
    )


def _occurred_at(event: Document, change: Change) -> datetime:
    """A deletion whose time is in whole seconds comes after every change in that second."""
    occurred_at = event.epoch("timestamp")
    timestamp = event.value("timestamp")
    if change is Change.DELETED and isinstance(timestamp, int | float) and in_seconds(timestamp):
        return occurred_at + timedelta(seconds=1, microseconds=-1)
    return occurred_at


def _primary_address(data: Document) -> Document | None:
    """The primary address, else the first one; empty if there is none; None in a deletion."""
    if not isinstance(data.value("email_addresses"), list):
        return None
    addresses = data.objects("email_addresses")
    primary_id = data.value("primary_email_address_id")
    marked = [entry for entry in addresses if entry.value("id") == primary_id]
    return next(iter(marked or addresses), Document(None))


def _is_verified(address: Document) -> bool:
    return address.value("verification", "status") == "verified"


PROVIDER = Provider(
    name="clerk",
    adapt=lifecycle(
        "type",
        {
            "user": _user,
            "organization": organization,
            "organizationMembership": _membership,
            "organizationInvitation": partial(
                invitation,
                email="email_address",
                state="status",
                accepted_by="user_id",
                end=Document.optional_epoch,
            ),
        },
        occurred_at=_occurred_at,
        version=lambda data: data.optional_epoch("updated_at"),
        with_states=["organizationInvitation"],
    ),
)
