"""The generic form of identity events, for providers without a module here.

The payload is the one that Standard Webhooks recommends::

    {"type": "user.updated", "timestamp": "2026-01-05T09:45:05.123Z", "data": {"id": "u1", …}}

A kind is ``organization``, ``user``, ``membership`` (``organization_membership`` too),
``invitation`` or ``connection``; other events are ignored. ``timestamp`` (ISO 8601) is when it
happened and ``data.updated_at``, where given, when the object last changed: of two events of one
object the later one counts, in whatever order they arrive. Of ``data``, a member that is missing is
left as it was, null empties it.
``active`` false suspends a user, and is an invitation or a pause of a membership. An ``email`` is
verified only if ``email_verified`` is true in the same event. A membership is named by its two ids,
or has an ``id`` of its own; the two others are then needed once, in any event.

An ``invitation`` has ``organization_id``, ``email``, ``role``, ``state`` (``pending``, ``accepted``
or ``revoked``), ``expires_at`` and ``accepted_user_id``. A ``connection`` is an SSO connection: it
has ``organization_id``, ``name``, ``provider``, ``type`` (such as ``saml``), ``state`` (``active``,
``inactive`` or ``draft``), ``domains`` (a list of names) and ``certificate_ends_at``.

A deletion needs the ids only. Deliveries are told apart by the ``webhook-id`` header, else by
``id`` beside ``type``, else by the body's digest.
"""

from __future__ import annotations

from app.identity_sync.events import ConnectionEvent, MembershipEvent, UserEvent, membership_key
from app.inbox.providers.payloads import Document, full_name
from app.inbox.providers.provider import Facts, Provider, invitation, lifecycle, organization


def _user(data: Document, facts: Facts) -> UserEvent:
    first, last = full_name(data.text("name"))
    given, family = data.text("first_name"), data.text("last_name")
    if given is not None or family is not None:
        first, last = given, family
    return UserEvent(
        **facts,
        object_id=data.identifier("id"),
        email=data.text("email"),
        email_verified=data.flag("email_verified"),
        first_name=first,
        last_name=last,
        active=data.flag("active"),
    )


def _membership(data: Document, facts: Facts) -> MembershipEvent:
    membership_id = data.optional_identifier("id")
    if membership_id:
        object_id = membership_id
        organization_id = data.optional_identifier("organization_id")
        user_id = data.optional_identifier("user_id")
    else:
        organization_id = data.identifier("organization_id")
        user_id = data.identifier("user_id")
        object_id = membership_key(organization_id, user_id)
    return MembershipEvent(
        **facts,
        object_id=object_id,
        membership_id=membership_id or "",
        organization_id=organization_id,
        user_id=user_id,
        roles=(*data.texts("role"), *data.texts("roles")) or None,
        active=data.flag("active"),
    )


def _connection(data: Document, facts: Facts) -> ConnectionEvent:
    ends_at = data.optional_moment("certificate_ends_at")
    return ConnectionEvent(
        **facts,
        object_id=data.identifier("id"),
        organization_id=data.optional_identifier("organization_id"),
        name=data.text("name"),
        provider=data.text("provider"),
        type=data.text("type"),
        state=data.text("state"),
        domains=data.texts("domains") if data.has("domains") else None,
        certificate=("signing", ends_at) if ends_at else None,
    )


PROVIDER = Provider(
    name="generic",
    own_id=lambda event: event.value("id"),
    adapt=lifecycle(
        "type",
        {
            "organization": organization,
            "user": _user,
            "membership": _membership,
            "organization_membership": _membership,
            "invitation": invitation,
            "connection": _connection,
        },
        occurred_at=lambda event, _: event.moment("timestamp"),
        version=lambda data: data.optional_moment("updated_at"),
    ),
)
