"""The receivers, and the supported providers of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Receiver:
    """An endpoint that receives events. A provider belongs to one receiver only.

    ``setting`` has its secrets: pairs ``preset:secret``, or secrets of its only ``preset``. The last
    one of ``providers`` is the generic form. ``apply(event, parts)`` applies what ``adapt`` of the
    provider returned for a claimed event, and returns the event's Status and detail; None: identity
    and e-mail events. ``api_key`` is a setting: if it has a value, another process reads the objects
    of the events from the provider, so the worker leaves them.
    """

    name: str
    path: str
    setting: str
    providers: tuple[Provider, ...]
    preset: str = ""
    apply: Callable[[Any, Sequence[Any]], tuple[Any, str]] | None = None
    api_key: str = ""


IDENTITY = Receiver(
    name="identity",
    path="/webhooks/idp",
    setting="idp_webhook_secrets",
    providers=(
        auth0.PROVIDER,
        stytch.PROVIDER,
        logto.PROVIDER,
        workos.PROVIDER,
        clerk.PROVIDER,
        generic.PROVIDER,
    ),
)
EMAIL = Receiver(
    name="email",
    path="/v1/app-communications/webhooks/emailprovider",
    setting="email_webhook_secrets",
    providers=(
        sendgrid.PROVIDER,
        mailgun.PROVIDER,
        postmark.PROVIDER,
        ses.PROVIDER,
        resend.PROVIDER,
        generic_email.PROVIDER,
    ),
)
RECEIVERS: dict[str, Receiver] = {}
_BY_SOURCE: dict[str, tuple[Receiver, Provider]] = {}


def register(receiver: Receiver) -> None:
    """Add a receiver. Modules of routes do this when they are imported."""
    RECEIVERS[receiver.name] = receiver
    _BY_SOURCE.update({each.name: (receiver, each) for each in receiver.providers})


register(IDENTITY)
register(EMAIL)


def get_provider(name: str) -> Provider:
    """The provider of this name; KeyError."""
    return _BY_SOURCE[name][1]


def receiver_of(source: str) -> Receiver:
    """The receiver of the provider of this name; KeyError."""
    return _BY_SOURCE[source][0]


def choose(receiver: Receiver, name: str | None, posted: Posted) -> Provider:
    """The provider that a verified request comes from.

    ``name`` is the provider of the preset that verified the request. A preset without a provider,
    such as ``svix``, may belong to a relay of other providers' events, so the form of the body
    decides. A provider of the other receiver, whose secret is configured for the wrong endpoint, is
    read as the generic form.
    """
    group = receiver.providers
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
