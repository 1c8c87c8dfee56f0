"""One verifier for each family of signatures: pure functions over a :class:`SignedRequest`.

Whatever was sent, a verifier returns a :class:`Proof` or raises :class:`SignatureInvalid`. The keys
were parsed at start by :mod:`app.inbox.signatures.presets`.

All verifiers follow the same rules. The raw bytes are signed. All headers are required before
anything is computed. A timestamp is ASCII digits; its age may be ``tolerance`` seconds in both
directions. Comparisons take constant time and compare every entry. Malformed entries do not match.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.inbox.signatures.proof import (
    Proof,
    SignatureInvalid,
    SignedRequest,
    check_age,
    decoded,
    json_object,
    required_text,
    utf8,
)


def standard_webhooks(
    request: SignedRequest,
    *,
    key: Sequence[bytes] | Ed25519PublicKey,
    families: Sequence[str],
    tolerance: int,
) -> Proof:
    """Standard Webhooks, and Svix, from which it grew: ``id.timestamp.body``.

    The first of the header families (``svix``, ``webhook``) that is complete is read. A secret
    is matched by ``v1`` entries (HMAC-SHA256) with any of its keys, a public key by ``v1a`` entries
    (Ed25519).
    """
    message_id, timestamp, signatures = _first_family(request, families)
    _check_age(timestamp, request.now, tolerance)
    content = _raw(f"{message_id}.{timestamp}.") + request.body
    entries = [entry.partition(",") for entry in signatures.split(" ")]
    if isinstance(key, Ed25519PublicKey):
        matched = any(
            _ed25519_holds(key, value, content) for version, _, value in entries if version == "v1a"
        )
    else:
        values = [value for version, _, value in entries if version == "v1"]
        matched = sum(_any_equal(values, base64.b64encode(_hmac(one, content))) for one in key) > 0
    if not matched:
        raise SignatureInvalid("no entry matches")
    return Proof(message_id=message_id)


def timestamped_hmac(
    request: SignedRequest,
    *,
    key: bytes,
    header: str,
    tolerance: int,
    per_second: int = 1,
    form: tuple[str, str, str, str] = (",", "t", "v1", "."),
) -> Proof:
    """WorkOS and Stripe: ``t=<time>,v1=<hex>``, over ``t.body``; ``t`` once, ``v1`` once or more.

    ``per_second`` is the unit of ``t``: 1 for seconds, 1000 for milliseconds. ``form``: what
    separates the entries, their two names, and what stands between time and body.
    """
    separator, time, version, joint = form
    given = _required(request, header)
    if separator != "," and "," in given:
        raise SignatureInvalid("a repeated header")
    parts = [part.strip(" ").partition("=") for part in given.split(separator)]
    times = [value for name, _, value in parts if name == time]
    if len(times) != 1:
        raise SignatureInvalid("not exactly one timestamp")
    _check_age(times[0], request.now, tolerance, per_second)
    expected = _hmac(key, _raw(f"{times[0]}{joint}") + request.body).hex().encode()
    if not _any_equal([value for name, _, value in parts if name == version], expected):
        raise SignatureInvalid(f"no {version} value matches")
    return Proof()


def body_hmac(request: SignedRequest, *, key: bytes, header: str, prefix: str = "") -> Proof:
    """GitHub, Logto and Lemon Squeezy: only the body is signed, in hex. A replay is always valid.

    No header is signed, ``X-GitHub-Delivery`` neither, so there is no delivery id.
    """
    expected = prefix + _hmac(key, request.body).hex()
    if not _equal(_required(request, header), expected.encode()):
        raise SignatureInvalid("the digest differs")
    return Proof()


def sendgrid_ecdsa(
    request: SignedRequest, *, key: EllipticCurvePublicKey, tolerance: int | None
) -> Proof:
    """SendGrid: ECDSA over ``timestamp`` + ``body``, nothing between them.

    Its retries last a day, perhaps with the first signature, so the default has no age limit.
    """
    timestamp = _required(request, "x-twilio-email-event-webhook-timestamp")
    signature = decoded(_raw(_required(request, "x-twilio-email-event-webhook-signature")))
    _check_age(timestamp, request.now, tolerance)
    try:
        key.verify(signature, timestamp.encode() + request.body, ECDSA(hashes.SHA256()))
    except InvalidSignature as invalid:
        raise SignatureInvalid("the ECDSA signature does not match") from invalid
    return Proof()


def mailgun(request: SignedRequest, *, key: bytes, tolerance: int) -> Proof:
    """Mailgun: ``signature`` in the JSON body, over ``timestamp`` + ``token`` only.

    The event itself is not signed. Anybody who has seen a request could forge others with its
    token, so the token is the ``replay_key``, which is accepted once.
    """
    signature = json_object(request.body).get("signature")
    if not isinstance(signature, dict):
        raise SignatureInvalid("no signature object")
    timestamp, token, digest = (
        required_text(signature, name) for name in ("timestamp", "token", "signature")
    )
    _check_age(timestamp, request.now, tolerance)
    if not _equal(digest, _hmac(key, utf8(timestamp + token)).hex().encode()):
        raise SignatureInvalid("the digest differs")
    return Proof(replay_key=token)


def static_credential(
    request: SignedRequest, *, key: bytes, header: str, scheme: str | None = None
) -> Proof:
    """Postmark, Auth0 and Chargebee: a shared secret in a header; nothing is signed.

    The name of an authentication ``scheme`` (Basic, Bearer) is compared without case.
    """
    given = _required(request, header)
    if scheme is not None:
        name, _, given = given.partition(" ")
        if name.lower() != scheme:
            raise SignatureInvalid("another authentication scheme")
        given = given.strip(" ")
    if not _equal(given, key):
        raise SignatureInvalid("the credential differs")
    return Proof()


def _check_age(timestamp: str, now: float, tolerance: int | None, per_second: int = 1) -> None:
    """Refuse an age beyond ``tolerance``, and a timestamp that is not 1 to 15 ASCII digits.

    ``int()`` alone would take ``1_000`` and ``+1`` too.
    """
    if not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise SignatureInvalid("not a timestamp")
    if tolerance is not None:
        check_age(now * per_second - int(timestamp), tolerance * per_second)


def _first_family(request: SignedRequest, families: Sequence[str]) -> tuple[str, str, str]:
    for family in families:
        values = [
            request.headers.get(f"{family}-{name}", "") for name in ("id", "timestamp", "signature")
        ]
        if all(values):
            return values[0], values[1], values[2]
    raise SignatureInvalid("headers are missing")


def _required(request: SignedRequest, name: str) -> str:
    value = request.headers.get(name)
    if not value:
        raise SignatureInvalid(f"no {name} header")
    return value


def _ed25519_holds(key: Ed25519PublicKey, signature: str, content: bytes) -> bool:
    try:
        key.verify(decoded(_raw(signature)), content)
    except (InvalidSignature, SignatureInvalid):
        return False
    return True


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _any_equal(values: Sequence[str], expected: bytes) -> bool:
    """Whether one value is equal; all are compared, so the duration does not reveal which."""
    return sum(_equal(value, expected) for value in values) > 0


def _equal(value: str, expected: bytes) -> bool:
    return hmac.compare_digest(_raw(value), expected)


def _raw(text: str) -> bytes:
    """A header's bytes: WSGI decodes them as latin-1."""
    return text.encode("latin-1", "backslashreplace")
