"""Signing a body as a provider does, for deliveries, ``send-test`` and tests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_der_private_key

from app.inbox.signatures.presets import decoded_key, polar_keys


class Signed(NamedTuple):
    """The headers to add, and the body, which contains the signature of Mailgun."""

    headers: dict[str, str]
    body: bytes


def sign(preset: str, secret: str, body: bytes, now: float, *, message_id: str = "") -> Signed:
    """Sign ``body`` as the preset's sender does at the moment ``now`` (seconds since 1970).

    ``secret`` is the configured value; the private key where the receiver has a public key
    (``whsk_…`` for Standard Webhooks, base64 of PKCS #8 DER for SendGrid). ``message_id`` is
    random where it is not given. Raises ValueError for ``ses``, which only Amazon can sign, and
    for an unknown preset or an invalid key.
    """
    signer = _SIGNERS.get(preset)
    if signer is None:
        raise ValueError(f"no signer for {preset}: one of {', '.join(_SIGNERS)}")
    return signer(secret, body, now, message_id or f"msg_{secrets.token_urlsafe(20)}")


def _standard_webhooks(
    family: str, secret: str, body: bytes, now: float, message_id: str
) -> Signed:
    content = f"{message_id}.{int(now)}.".encode() + body
    if secret.startswith("whsk_"):
        private = Ed25519PrivateKey.from_private_bytes(decoded_key(secret[5:])[:32])
        version, signature = "v1a", private.sign(content)
    else:
        key = decoded_key(secret.removeprefix("whsec_"))
        version, signature = "v1", hmac.digest(key, content, hashlib.sha256)
    headers = {
        f"{family}-id": message_id,
        f"{family}-timestamp": str(int(now)),
        f"{family}-signature": f"{version},{base64.b64encode(signature).decode()}",
    }
    return Signed(headers, body)


def _timestamped(
    header: str, form: str, unit: int, secret: str, body: bytes, now: float, message_id: str
) -> Signed:
    """``form`` is that of the header; what is signed has a colon where its entries have semicolons."""
    time = int(now * unit)
    joint = ":" if ";" in form else "."
    return Signed({header: form.format(time, _hex(secret, f"{time}{joint}".encode() + body))}, body)


def _github(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    signature = f"sha256={_hex(secret, body)}"
    return Signed({"X-Hub-Signature-256": signature, "X-GitHub-Delivery": message_id}, body)


def _polar(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    key = base64.b64encode(polar_keys(secret)[-1]).decode()
    return _standard_webhooks("webhook", key, body, now, message_id)


def _digest(header: str, secret: str, body: bytes, now: float, message_id: str) -> Signed:
    return Signed({header: _hex(secret, body)}, body)


def _sendgrid(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    key = load_der_private_key(decoded_key(secret), password=None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("sendgrid signs with a P-256 private key")
    time = str(int(now))
    signature = key.sign(time.encode() + body, ECDSA(hashes.SHA256()))
    headers = {
        "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
        "X-Twilio-Email-Event-Webhook-Timestamp": time,
    }
    return Signed(headers, body)


def _mailgun(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    time, token = str(int(now)), secrets.token_hex(25)
    digest = _hex(secret, f"{time}{token}".encode())
    signature = {"timestamp": time, "token": token, "signature": digest}
    return Signed({}, json.dumps({**json.loads(body), "signature": signature}).encode())


def _basic(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    credentials = base64.b64encode(secret.encode()).decode()
    return Signed({"Authorization": f"Basic {credentials}"}, body)


def _bearer(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    return Signed({"Authorization": f"Bearer {secret}"}, body)


def _header(secret: str, body: bytes, now: float, message_id: str) -> Signed:
    name, _, value = secret.partition(":")
    return Signed({name: value}, body)


def _hex(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


_SIGNERS: dict[str, Callable[[str, bytes, float, str], Signed]] = {
    "standard_webhooks": partial(_standard_webhooks, "webhook"),
    **dict.fromkeys(("svix", "clerk", "stytch", "resend"), partial(_standard_webhooks, "svix")),
    "workos": partial(_timestamped, "WorkOS-Signature", "t={}, v1={}", 1000),
    "stripe": partial(_timestamped, "Stripe-Signature", "t={},v1={}", 1),
    "paddle": partial(_timestamped, "Paddle-Signature", "ts={};h1={}", 1),
    "lemonsqueezy": partial(_digest, "X-Signature"),
    "polar": _polar,
    "chargebee": _basic,
    "github": _github,
    "logto": partial(_digest, "logto-signature-sha-256"),
    "sendgrid": _sendgrid,
    "mailgun": _mailgun,
    "postmark": _basic,
    "auth0": _bearer,
    "auth0_basic": _basic,
    "auth0_header": _header,
}
