"""The presets: how each provider signs, and how its secret is written in the configuration."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from app.inbox.signatures import verifiers
from app.inbox.signatures.proof import Proof
from app.inbox.signatures.sns import aws_sns

HOUR = 3600
MAX_BODY = 5 * 1024 * 1024
MAX_BODY_WITH_SIGNATURE = 256 * 1024


class Value(NamedTuple):
    """The kind of secret of a preset."""

    read: Callable[[str], dict[str, object]]
    """Turns the text into the verifier's arguments, or raises ValueError."""
    expected: str
    """Its name in error messages."""


def _text(value: str) -> dict[str, object]:
    if not value:
        raise ValueError
    return {"key": value.encode()}


def _standard_key(value: str) -> dict[str, object]:
    if value.startswith("whpk_"):
        return {"key": Ed25519PublicKey.from_public_bytes(decoded_key(value[5:]))}
    secret = decoded_key(value.removeprefix("whsec_"))
    if not secret or value.startswith("whsk_"):
        raise ValueError
    return {"key": (secret,)}


def polar_keys(value: str) -> tuple[bytes, ...]:
    """The keys that a secret of Polar may stand for, which only its age decides.

    Until September 2026 the key was the whole text, then what follows ``whsec_`` in base64.
    """
    if not value.removeprefix("whsec_"):
        raise ValueError
    try:
        decoded = decoded_key(value.removeprefix("whsec_")) if value.startswith("whsec_") else b""
    except ValueError:
        decoded = b""
    return (value.encode(), decoded) if decoded else (value.encode(),)


def _p256_key(value: str) -> dict[str, object]:
    key = load_der_public_key(decoded_key(value))
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError
    return {"key": key}


def _topic(value: str) -> dict[str, object]:
    if not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_.-]+", value):
        raise ValueError
    return {"topic_arn": value}


def _user_and_password(value: str) -> dict[str, object]:
    if not re.fullmatch(r"[^:]+:.+", value):
        raise ValueError
    return {"key": base64.b64encode(value.encode())}


def _header_and_value(value: str) -> dict[str, object]:
    parts = re.fullmatch(r"([A-Za-z0-9-]+):(.+)", value)
    if not parts:
        raise ValueError
    return {"header": parts[1].lower(), "key": parts[2].encode()}


def decoded_key(text: str) -> bytes:
    """Base64, padded or not."""
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


_SECRET = Value(_text, "a secret")
_STANDARD_KEY = Value(
    _standard_key, "a secret (whsec_ and base64) or a public key (whpk_ and base64)"
)
_P256_KEY = Value(_p256_key, "a P-256 public key (base64 of its DER form, without PEM lines)")
_TOPIC = Value(_topic, "the ARN of an SNS topic")
_USER_AND_PASSWORD = Value(_user_and_password, "user:password")
_POLAR_SECRET = Value(lambda value: {"key": polar_keys(value)}, "a secret")
_HEADER_AND_VALUE = Value(_header_and_value, "header:value")


@dataclass(frozen=True, slots=True)
class Preset:
    """How one provider signs."""

    verifier: Callable[..., Proof]
    provider: str | None
    """The provider of the payloads; None where only their form tells."""
    options: Mapping[str, object] = field(default_factory=dict)
    """The verifier's other arguments. ``tolerance``: seconds, configurable; None for any age."""
    value: Value = _SECRET
    max_body: int = MAX_BODY
    """Bytes of a body. A signature inside it is found by parsing, before the sender is known."""


def _svix(provider: str | None, families: Sequence[str] = ("svix", "webhook")) -> Preset:
    """``families`` are the prefixes of the headers."""
    options = {"families": families, "tolerance": 300}
    return Preset(verifiers.standard_webhooks, provider, options, _STANDARD_KEY)


def _authorization(provider: str, scheme: str, value: Value) -> Preset:
    options = {"header": "authorization", "scheme": scheme}
    return Preset(verifiers.static_credential, provider, options, value)


PRESETS: Mapping[str, Preset] = {
    "standard_webhooks": _svix(None),
    "svix": _svix(None),
    "clerk": _svix("clerk", ("svix",)),  # as Clerk's own library
    "stytch": _svix("stytch"),
    "resend": _svix("resend"),
    "workos": Preset(
        verifiers.timestamped_hmac,
        "workos",
        {"header": "workos-signature", "tolerance": 180, "per_second": 1000},
    ),
    "stripe": Preset(
        verifiers.timestamped_hmac, None, {"header": "stripe-signature", "tolerance": 300}
    ),
    "paddle": Preset(
        verifiers.timestamped_hmac,
        "paddle",
        {"header": "paddle-signature", "tolerance": 300, "form": (";", "ts", "h1", ":")},
    ),
    "lemonsqueezy": Preset(verifiers.body_hmac, "lemonsqueezy", {"header": "x-signature"}),
    "polar": Preset(
        verifiers.standard_webhooks,
        "polar",
        {"families": ("webhook",), "tolerance": 300},
        _POLAR_SECRET,
    ),
    "chargebee": _authorization("chargebee", "basic", _USER_AND_PASSWORD),
    "github": Preset(
        verifiers.body_hmac, None, {"header": "x-hub-signature-256", "prefix": "sha256="}
    ),
    "logto": Preset(verifiers.body_hmac, "logto", {"header": "logto-signature-sha-256"}),
    "sendgrid": Preset(verifiers.sendgrid_ecdsa, "sendgrid", {"tolerance": None}, _P256_KEY),
    "mailgun": Preset(
        verifiers.mailgun, "mailgun", {"tolerance": 900}, max_body=MAX_BODY_WITH_SIGNATURE
    ),
    "ses": Preset(aws_sns, "ses", {"tolerance": HOUR}, _TOPIC, MAX_BODY_WITH_SIGNATURE),
    "postmark": _authorization("postmark", "basic", _USER_AND_PASSWORD),
    "auth0": _authorization("auth0", "bearer", _SECRET),
    "auth0_basic": _authorization("auth0", "basic", _USER_AND_PASSWORD),
    "auth0_header": Preset(verifiers.static_credential, "auth0", value=_HEADER_AND_VALUE),
}
