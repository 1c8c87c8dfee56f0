"""Amazon SNS, which carries the events of SES: an X.509 signature over chosen members.

The steps are those of "Verifying the signatures of Amazon SNS messages" in the SNS developer
guide. Any AWS account can make SNS sign a message, so the topic is compared first; only then,
and only on a host of SNS, is a certificate fetched.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from app.webhooks.signatures.certificates import Certificates
from app.webhooks.signatures.verifiers import (
    Headers,
    Kind,
    Proof,
    SignatureInvalid,
    check_age,
    json_object,
    required_text,
    utf8,
)

_HOST = r"https://sns\.[a-zA-Z0-9-]{3,}\.amazonaws\.com(?:\.cn)?/"
_CERTIFICATE_URL = re.compile(_HOST + r"[a-zA-Z0-9._/-]+\.pem")
SUBSCRIBE_URL = re.compile(_HOST + r"[!-~]*")


class _Type(NamedTuple):
    kind: Kind
    signed: tuple[str, ...]


_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_TYPES = {
    "Notification": _Type(
        "event", ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
    ),
    "SubscriptionConfirmation": _Type("subscription_confirmation", _CONFIRMATION),
    "UnsubscribeConfirmation": _Type("unsubscribe_confirmation", _CONFIRMATION),
}
_HASHES: dict[str, hashes.HashAlgorithm] = {
    "1": hashes.SHA1(),  # noqa: S303 - still what a topic signs with unless told otherwise
    "2": hashes.SHA256(),
}


def aws_sns(
    headers: Headers,
    body: bytes,
    now: float,
    *,
    topic_arn: str,
    certificates: Certificates,
    tolerance: int,
) -> Proof:
    """Signature versions 1 (SHA-1) and 2 (SHA-256), from the configured topic only.

    A subscription confirmation comes back as such, with the address to visit; nothing is
    visited here but the certificate's address.
    """
    envelope = json_object(body)
    if required_text(envelope, "TopicArn") != topic_arn:
        raise SignatureInvalid("another topic")
    type_ = _TYPES.get(required_text(envelope, "Type"))
    algorithm = _HASHES.get(required_text(envelope, "SignatureVersion"))
    if type_ is None or algorithm is None:
        raise SignatureInvalid("unknown type or signature version")
    content = _signed_text(envelope, type_.signed)
    check_age(now - _epoch(required_text(envelope, "Timestamp")), tolerance)
    certificate_url = required_text(envelope, "SigningCertURL")
    if not _CERTIFICATE_URL.fullmatch(certificate_url):
        raise SignatureInvalid("the certificate is not on a host of SNS")
    signature = _signature(envelope)
    key = certificates.public_key(certificate_url)
    try:
        key.verify(signature, content, PKCS1v15(), algorithm)
    except InvalidSignature as invalid:
        raise SignatureInvalid("the RSA signature does not hold") from invalid
    return Proof(
        message_id=envelope["MessageId"],
        kind=type_.kind,
        confirm_url=_confirm_url(envelope, type_.kind),
    )


def _signed_text(envelope: dict[str, Any], names: tuple[str, ...]) -> bytes:
    """``Name\\nvalue\\n`` of each member; ``Subject`` is left out where there is none."""
    return b"".join(
        utf8(f"{name}\n{required_text(envelope, name)}\n")
        for name in names
        if name != "Subject" or envelope.get("Subject") is not None
    )


def _signature(envelope: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(utf8(required_text(envelope, "Signature")), validate=True)
    except binascii.Error as fault:
        raise SignatureInvalid("not base64") from fault


def _epoch(timestamp: str) -> float:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError as fault:
        raise SignatureInvalid("not a timestamp") from fault
    if moment.tzinfo is None:
        raise SignatureInvalid("a timestamp without offset")
    return moment.timestamp()


def _confirm_url(envelope: dict[str, Any], kind: Kind) -> str | None:
    """The address to confirm at, if it is one of SNS."""
    if kind != "subscription_confirmation":
        return None
    url: str = envelope["SubscribeURL"]
    return url if SUBSCRIBE_URL.fullmatch(url) else None
