"""The supported providers of each receiver. The last one of each is the generic form."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from app.inbox.providers import (
    auth0,
    clerk,
    generic,
    generic_email,
    logto,
    mailgun,
    postmark,
    resend,
    sendgrid,
    ses,
    stytch,
    workos,
)
from app.inbox.providers.payloads import Posted, Unreadable
from app.inbox.providers.provider import Provider


class Receiver(StrEnum):
    """The two endpoints that receive events."""

    IDENTITY = "identity"
    EMAIL = "email"


PATHS = {
    Receiver.IDENTITY: "/webhooks/idp",
    Receiver.EMAIL: "/v1/app-communications/webhooks/emailprovider",
}
PROVIDERS: Mapping[Receiver, tuple[Provider, ...]] = {
    Receiver.IDENTITY: (
        auth0.PROVIDER,
        stytch.PROVIDER,
        logto.PROVIDER,
        workos.PROVIDER,
        clerk.PROVIDER,
        generic.PROVIDER,
    ),
    Receiver.EMAIL: (
        sendgrid.PROVIDER,
        mailgun.PROVIDER,
        postmark.PROVIDER,
        ses.PROVIDER,
        resend.PROVIDER,
        generic_email.PROVIDER,
    ),
}
_BY_NAME = {provider.name: provider for group in PROVIDERS.values() for provider in group}


def get_provider(name: str) -> Provider:
    """The provider of this name, which is unique over both receivers; KeyError."""
    return _BY_NAME[name]


def choose(receiver: Receiver, name: str | None, posted: Posted) -> Provider:
    """The provider that a verified request comes from.

    ``name`` is the provider of the preset that verified the request. A preset without one, such as
    ``svix``, may belong to a relay of other providers' events, so the form of the body decides. A
    provider of the other receiver, whose secret is configured for the wrong endpoint, is read as
    the generic form.
    """
    group = PROVIDERS[receiver]
    name = name or _provider_by_form(posted)
    return next((provider for provider in group if provider.name == name), group[-1])


def _provider_by_form(posted: Posted) -> str | None:
    try:
        value = posted.json
    except Unreadable:
        return None
    match value:
        case {"specversion": str(), "a0tenant": str()}:
            return "auth0"
        case {"source": str(source)} if source.startswith("urn:auth0:"):
            return "auth0"
        case {"source": str(), "object_type": str(), "action": str()}:
            return "stytch"
        case {"event": str(), "hookId": str()}:
            return "logto"
        case {"event": str(), "data": {"object": str()}, "created_at": str()}:
            return "workos"
        case {"object": "event", "data": {"object": str()}}:
            return "clerk"
        case list():
            return "sendgrid"
        case {"event-data": dict()}:
            return "mailgun"
        case {"RecordType": str()}:
            return "postmark"
        case {"Type": str(), "TopicArn": str(), "Message": str()}:
            return "ses"
        case {"type": str(), "data": {"email_id": str()}}:
            return "resend"
        case {"type": str(kind)} if kind.startswith("contact."):
            return "resend"
    return None
