"""Which senders a receiver believes: presets per provider, configured by one line of text.

A receiver's text holds ``preset:value`` pairs separated by white space; only the first colon
parts them, and ``?tolerance=<seconds>`` at the end of a pair replaces the preset's own. The same
preset twice is a rotation, several presets are several senders: a request is accepted if any
pair fits. ``PRESETS`` lists them all.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from app.webhooks.signatures import verifiers
from app.webhooks.signatures.certificates import Certificates, CertificateUnavailable
from app.webhooks.signatures.sns import aws_sns
from app.webhooks.signatures.verifiers import Headers, Proof
from app.webhooks.signatures.verifiers import SignatureInvalid as SignatureInvalid

Check = Callable[[Headers, bytes, float], Proof]

HOUR = 3600


class Value(NamedTuple):
    """What stands behind the colon."""

    read: Callable[[str], dict[str, Any]]
    """Turns the text into the verifier's arguments, or raises ValueError."""
    expected: str


@dataclass(frozen=True, slots=True)
class Preset:
    """How one provider signs."""

    verifier: Callable[..., Proof]
    value: Value
    provider: str | None
    """Whose payloads these are; None where the payload has to tell."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The verifier's other arguments; ``tolerance`` (seconds, None for any age) may be tuned."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One ``preset:value`` pair, ready to check requests with."""

    preset: str
    provider: str | None
    check: Check = field(repr=False)


@dataclass(frozen=True, slots=True)
class Verified:
    """Who sent the request, and what the signature told."""

    preset: str
    provider: str | None
    proof: Proof


def parse_schemes(text: str, *, certificates: Certificates | None = None) -> list[Scheme]:
    """Read a receiver's configuration; a ValueError names what is wrong, never the value."""
    store = certificates or Certificates()
    return [_parse_pair(pair, store) for pair in text.split()]


def verify(
    schemes: Iterable[Scheme], headers: Iterable[tuple[str, str]], body: bytes, now: float
) -> Verified:
    """The first scheme that fits; SignatureInvalid if none does, whatever was sent.

    ``body`` is the raw bytes, ``now`` seconds since 1970. Every scheme is tried, so that time
    does not tell which one fits. ``CertificateUnavailable`` is the one SignatureInvalid that a
    retry may mend.
    """
    names = _joined(headers)
    found: Verified | None = None
    # An exception that is kept would keep the whole request until the next garbage collection.
    kind, reason = SignatureInvalid, "no scheme is configured"
    for scheme in schemes:
        try:
            proof = scheme.check(names, body, now)
        except SignatureInvalid as invalid:
            if kind is not CertificateUnavailable:
                kind, reason = type(invalid), str(invalid)
        else:
            found = found or Verified(scheme.preset, scheme.provider, proof)
    if found is None:
        raise kind(reason)
    return found


def _joined(headers: Iterable[tuple[str, str]]) -> Headers:
    """Lower-case names; a repeated header becomes one list, which no signature header may be."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]},{value}" if key in joined else value
    return joined


def _parse_pair(pair: str, certificates: Certificates) -> Scheme:
    name, colon, value = pair.partition(":")
    preset = PRESETS.get(name)
    if not colon or preset is None:
        known = ", ".join(PRESETS)
        raise ValueError(f"expected preset:value, with one of the presets {known}")
    options = dict(preset.options)
    if tuned := re.fullmatch(r"(.*)\?tolerance=([0-9]{1,9})", value):
        if "tolerance" not in options:
            raise ValueError(f"{name}: its requests carry no time, so there is no tolerance")
        value, options["tolerance"] = tuned[1], int(tuned[2])
    if preset.verifier is aws_sns:
        options["certificates"] = certificates
    try:
        options |= preset.value.read(value)
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise ValueError(f"{name}: the value is not {preset.value.expected}") from fault
    return Scheme(name, preset.provider, partial(preset.verifier, **options))


def _text(value: str) -> dict[str, Any]:
    if not value:
        raise ValueError
    return {"key": value.encode()}


def _standard_key(value: str) -> dict[str, Any]:
    if value.startswith("whpk_"):
        return {"key": Ed25519PublicKey.from_public_bytes(decoded_key(value[5:]))}
    secret = decoded_key(value.removeprefix("whsec_"))
    if not secret or value.startswith("whsk_"):
        raise ValueError
    return {"key": secret}


def _p256_key(value: str) -> dict[str, Any]:
    key = load_der_public_key(decoded_key(value))
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError
    return {"key": key}


def _topic(value: str) -> dict[str, Any]:
    if not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_.-]+", value):
        raise ValueError
    return {"topic_arn": value}


def _user_and_password(value: str) -> dict[str, Any]:
    if not re.fullmatch(r"[^:]+:.+", value):
        raise ValueError
    return {"key": base64.b64encode(value.encode())}


def _header_and_value(value: str) -> dict[str, Any]:
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
_HEADER_AND_VALUE = Value(_header_and_value, "header:value")


def _svix(families: Sequence[str], provider: str | None) -> Preset:
    return Preset(
        verifiers.standard_webhooks,
        _STANDARD_KEY,
        provider,
        {"families": families, "tolerance": 300},
    )


_BOTH = ("svix", "webhook")

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "standard_webhooks": _svix(_BOTH, None),
        "svix": _svix(_BOTH, None),
        "clerk": _svix(("svix",), "clerk"),
        "stytch": _svix(_BOTH, "stytch"),
        "resend": _svix(_BOTH, "resend"),
        "workos": Preset(
            verifiers.timestamped_hmac,
            _SECRET,
            "workos",
            {"header": "workos-signature", "tolerance": 180, "per_second": 1000},
        ),
        "stripe": Preset(
            verifiers.timestamped_hmac,
            _SECRET,
            None,
            {"header": "stripe-signature", "tolerance": 300},
        ),
        "github": Preset(
            verifiers.body_hmac,
            _SECRET,
            None,
            {
                "header": "x-hub-signature-256",
                "prefix": "sha256=",
                "id_header": "x-github-delivery",
            },
        ),
        "logto": Preset(
            verifiers.body_hmac, _SECRET, "logto", {"header": "logto-signature-sha-256"}
        ),
        "sendgrid": Preset(verifiers.sendgrid_ecdsa, _P256_KEY, "sendgrid", {"tolerance": None}),
        "mailgun": Preset(verifiers.mailgun, _SECRET, "mailgun", {"tolerance": 900}),
        "ses": Preset(aws_sns, _TOPIC, "ses", {"tolerance": HOUR}),
        "postmark": Preset(
            verifiers.static_credential,
            _USER_AND_PASSWORD,
            "postmark",
            {"header": "authorization", "scheme": "basic"},
        ),
        "auth0": Preset(
            verifiers.static_credential,
            _SECRET,
            "auth0",
            {"header": "authorization", "scheme": "bearer"},
        ),
        "auth0_basic": Preset(
            verifiers.static_credential,
            _USER_AND_PASSWORD,
            "auth0",
            {"header": "authorization", "scheme": "basic"},
        ),
        "auth0_header": Preset(verifiers.static_credential, _HEADER_AND_VALUE, "auth0"),
    }
)
