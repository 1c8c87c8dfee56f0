"""WorkOS: users, organizations, organization memberships, invitations and SSO connections.

Each event contains the whole object, except that an event of a certificate contains only the
connection's id. A deletion has the object's old ``updated_at``. A ``pending`` membership is an
invitation, not access. https://workos.com/docs/events lists the events.
"""

from __future__ import annotations

import re
from functools import partial

from app.identity_sync.events import ConnectionEvent, MembershipEvent, OrganizationEvent, UserEvent
from app.inbox.providers.payloads import Document
from app.inbox.providers.provider import Facts, Provider, invitation, lifecycle

_PROTOCOL = re.compile("(SAML|OIDC|OAuth)$", re.IGNORECASE)


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


def _connection(data: Document, facts: Facts) -> ConnectionEvent:
    """A connection, or one of its certificates. The type ``OktaSAML`` is Okta's, and is ``saml``."""
    if data.has("certificate"):
        certificate = data.at("certificate")
        return ConnectionEvent(
            **facts,
            object_id=data.identifier("connection", "id"),
            organization_id=data.optional_identifier("connection", "organization_id"),
            certificate=(
                certificate.identifier("certificate_type"),
                certificate.moment("expiry_date"),
            ),
        )
    provider, *protocol = _PROTOCOL.split(data.text("connection_type") or "")
    return ConnectionEvent(
        **facts,
        object_id=data.identifier("id"),
        organization_id=data.optional_identifier("organization_id"),
        name=data.text("name"),
        provider=provider,
        type="".join(protocol).lower(),
        state=data.text("state"),
        domains=tuple(name for each in data.objects("domains") for name in each.texts("domain")),
    )


PROVIDER = Provider(
    name="workos",
    event_type=lambda event: event.value("event"),
    own_id=lambda event: event.value("id"),
    prefers_own_id=True,
    adapt=lifecycle(
        "event",
        {
            "user": _user,
            "organization": _organization,
            "organization_membership": _membership,
            "invitation": partial(invitation, role="role_slug"),
            "connection": _connection,
        },
        occurred_at=lambda event, _: event.moment("created_at"),
        version=lambda data: data.optional_moment("updated_at"),
        with_states=["invitation", "connection"],
    ),
)
