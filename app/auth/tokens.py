"""User tokens: JWTs of the identity provider (RFC 7519), verified and then cached for a minute."""

from __future__ import annotations

import math
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from app.auth.published import Published
from app.config import Config, ConfigError
from app.core.errors import Unauthenticated, Unavailable
from app.core.json_text import Json

LEEWAY = 30  # seconds of clock difference allowed for `exp`, `nbf` and `iat`
REMEMBERED = 60.0  # seconds for which a verified token is not verified again
MAX_REMEMBERED = 10_000  # tokens; then the cache is emptied
MAX_EMAIL = 320  # characters
INVALID = "token_invalid"
REASONS: dict[type[Exception], str] = {  # for the log
    jwt.ExpiredSignatureError: "token_expired",
    jwt.ImmatureSignatureError: "token_not_yet_valid",
    jwt.InvalidAudienceError: "token_audience",
    jwt.InvalidIssuerError: "token_issuer",
    jwt.InvalidSignatureError: "token_signature",
}
REQUIRED = ["exp", "iat", "iss", "aud"]
Key: TypeAlias = tuple[str, Any]
"""An algorithm, and a public key for it (an object that PyJWT accepts)."""


class KeysUnavailable(Unavailable):
    code = "keys_unavailable"
    detail = "The identity provider's keys cannot be read."


@dataclass(frozen=True)
class Claims:
    """The claims of a verified token. ``org_id`` is None if the token names no organization.

    ``email`` is None unless the token says that the address is verified.
    """

    subject: str
    org_id: str | None
    expires_at: float = math.inf  # ``exp`` and LEEWAY, in seconds since 1970
    email: str | None = None

    @classmethod
    def checked(cls, payload: Mapping[str, Json], config: Config) -> Claims:
        """The claims. Unauthenticated if an id is not a text of 1 to 255 printable characters."""
        org_id = payload.get(config.jwt_org_claim)
        subject = _checked(payload.get(config.jwt_subject_claim))
        expires_at = int(payload["exp"]) + LEEWAY
        org_id = None if org_id is None else _checked(org_id)
        return cls(subject, org_id, expires_at, _verified_email(payload, config))


class TokenVerifier:
    """Checks signature, issuer, audience and times. It does not check role and tenant state.

    A verified token is cached for :data:`REMEMBERED` seconds, but not longer than ``exp`` + LEEWAY.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._keys = _keys(config)
        self._seen: dict[str, tuple[float, Claims]] = {}

    def verify(self, token: str) -> Claims:
        """The claims of a token; raises Unauthenticated for an invalid token.

        Only one encoding of each token is accepted, so each token has one rate limit. ES256 is an
        exception: anybody can derive a second valid signature from the first.
        """
        now = time.time()
        known = self._seen.get(token)
        if known is not None and known[0] > now:
            return known[1]
        payload = self._decode(token)
        claims = Claims.checked(payload, self._config)
        if len(self._seen) >= MAX_REMEMBERED:
            self._seen.clear()
        self._seen[token] = (min(now + REMEMBERED, claims.expires_at), claims)
        return claims

    def _decode(self, token: str) -> dict[str, Json]:
        try:
            algorithm, key = self._keys.find(token)
            payload: dict[str, Json] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._config.jwt_issuer,
                audience=self._config.jwt_audience,
                leeway=LEEWAY,
                options={
                    "require": REQUIRED,
                    "verify_iat": True,
                    "enforce_minimum_key_length": True,
                },
            )
            if not all(map(_is_canonical, token.split("."))):
                raise ValueError("a segment is not canonical base64url")
            return payload
        except (jwt.PyJWTError, LookupError, ValueError, TypeError, OverflowError) as fault:
            raise Unauthenticated(reason=REASONS.get(type(fault), INVALID)) from None


def _is_canonical(segment: str) -> bool:
    """Whether a segment is base64url without padding (RFC 7515, section 2) and unused bits are 0.

    PyJWT also accepts padding, other unused bits and foreign characters. The signature does not
    cover its own segment, so a client could change these in it.
    """
    decoded = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    return urlsafe_b64encode(decoded).decode().rstrip("=") == segment


def _checked(value: object) -> str:
    """Return ``value``. Raise Unauthenticated if it is not 1 to 255 printable characters."""
    if not isinstance(value, str) or not 0 < len(value) <= 255 or not value.isprintable():
        raise Unauthenticated(reason=INVALID)
    return value


def _verified_email(payload: Mapping[str, Json], config: Config) -> str | None:
    """The address, if the token says that it is verified; some providers say so by a text."""
    email, claim = payload.get(config.jwt_email_claim), config.jwt_email_verified_claim
    is_verified = not claim or payload.get(claim) is True or payload.get(claim) == "true"
    is_address = isinstance(email, str) and 0 < len(email) <= MAX_EMAIL and email.isprintable()
    return email if is_verified and is_address else None


class PinnedKey:
    """The configured public key. The key's type decides the algorithm; the token does not."""

    def __init__(self, pem: str, allowed: tuple[str, ...]) -> None:
        self._key = load_pem_public_key(pem.encode())
        self._algorithm = algorithm_of(self._key)
        if self._algorithm not in allowed:
            raise LookupError(f"{self._algorithm} keys are not accepted")

    def find(self, token: str) -> Key:
        """The algorithm and the key, for any token. Decoding refuses one with another ``alg``."""
        return self._algorithm, self._key


class KeySet:
    """The identity provider's published keys (RFC 7517).

    They are fetched when a token names an unknown key id, and when they are older than an hour. A
    token with a known key id does not wait for the fetch.
    """

    def __init__(self, url: str, allowed: tuple[str, ...]) -> None:
        self._allowed = allowed
        self._published = Published(url, self._read)

    def find(self, token: str) -> Key:
        """The key that ``kid`` in the header names. ``jku``, ``x5u`` and ``jwk`` are ignored."""
        return self.get(jwt.get_unverified_header(token).get("kid"))

    def get(self, key_id: str | None) -> Key:
        """The algorithm and the key with this id; LookupError for an unknown id.

        Raises KeysUnavailable if no fetch has succeeded yet.
        """
        is_known = key_id in (self._published.content or ())
        if self._published.is_old or not is_known:
            self._published.refresh(wait=not is_known)
        if self._published.content is None:
            raise KeysUnavailable
        return self._published.content[key_id]

    def _read(self, document: Json) -> dict[str | None, Key]:
        """The usable keys by id; LookupError if no key is usable."""
        keys: dict[str | None, Key] = {}
        for entry in document["keys"]:
            try:
                key = jwt.PyJWK(entry).key
                algorithm = algorithm_of(key)
                if algorithm in self._allowed and entry.get("use", "sig") == "sig":
                    keys[entry.get("kid")] = (algorithm, key)
            except (jwt.PyJWTError, LookupError, ValueError, TypeError, AttributeError):
                continue  # an unreadable entry does not affect the other keys
        if not keys:
            raise LookupError("the key set has no key that can be used")
        return keys


def algorithm_of(key: object) -> str:
    """The algorithm for a public key's type; LookupError for a type that is not supported."""
    match key:
        case RSAPublicKey() if key.public_numbers().n % 2:  # an even modulus has no private key
            return "RS256"
        case Ed25519PublicKey():
            return "EdDSA"
        case EllipticCurvePublicKey() if key.curve.name == "secp256r1":
            return "ES256"
    raise LookupError("not a key for RS256, ES256 or EdDSA")


def _keys(config: Config) -> PinnedKey | KeySet:
    if config.jwt_public_key:
        try:
            return PinnedKey(config.jwt_public_key, config.jwt_algorithms)
        except (ValueError, LookupError, UnsupportedAlgorithm) as fault:
            raise ConfigError(f"JWT_PUBLIC_KEY is not usable: {fault}.") from None
    return KeySet(config.jwt_jwks_url, config.jwt_algorithms)
