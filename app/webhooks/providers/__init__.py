"""The supported providers of each receiver.

Where the signature does not identify the provider (``standard_webhooks``, ``stripe``, ``github``),
it is the first one that recognises the document, else the generic one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from app.webhooks.providers import (
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
from app.webhooks.providers.payloads import Posted, Unreadable
from app.webhooks.providers.provider import Provider


class Receiver(StrEnum):
    """The two endpoints that receive events."""

    IDENTITY = "identity"
    EMAIL = "email"


PATHS = {
    Receiver.IDENTITY: "/webhooks/idp",
    Receiver.EMAIL: "/v1/app-communications/webhooks/emailprovider",
}
PROVIDERS: Mapping[Receiver, tuple[Provider, ...]] = MappingProxyType(
    {
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
)
_BY_NAME = {provider.name: provider for group in PROVIDERS.values() for provider in group}


def get_provider(name: str) -> Provider:
    """The provider of this name, which is unique over both receivers; KeyError."""
    return _BY_NAME[name]


def choose(receiver: Receiver, name: str | None, posted: Posted) -> Provider:
    """The provider that a verified request comes from.

    ``name`` is the provider that the signature identifies, or None. A provider of the other
    receiver, whose secret is configured for the wrong endpoint, is read as the generic form.
    """
    group = PROVIDERS[receiver]
    if name is not None:
        return next((provider for provider in group if provider.name == name), group[-1])
    try:
        document = posted.document
    except Unreadable:
        return group[-1]
    return next(provider for provider in group if provider.recognises(document))
