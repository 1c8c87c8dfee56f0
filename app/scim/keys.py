"""Public keys of clients that sign assertions, as JWKs (RFC 7517)."""

from __future__ import annotations

from collections.abc import Mapping

import jwt

from app.auth.tokens import algorithm_of

MEMBERS = frozenset({"kty", "crv", "x", "y", "n", "e", "kid", "use", "alg"})
MAX_TEXT = 1400  # characters; the modulus of an RSA key of 8,192 bits
RSA_BITS = range(2048, 4097)


def public_key(entry: Mapping[str, object]) -> dict[str, object]:
    """The public members of a JWK; raises ValueError for what is no key for an assertion.

    A private key is refused, because it is no secret any more.
    """
    if "d" in entry or "k" in entry:
        raise ValueError("the key is private: send only its public part")
    key = {name: value for name, value in entry.items() if name in MEMBERS}
    if not all(isinstance(value, str) and len(value) <= MAX_TEXT for value in key.values()):
        raise ValueError("the members of a key are texts")
    try:
        loaded = jwt.PyJWK(key).key
        algorithm_of(loaded)
    except (jwt.PyJWTError, LookupError, ValueError, TypeError, AttributeError):
        raise ValueError("not a public key for RS256, ES256 or EdDSA") from None
    if key["kty"] == "RSA" and loaded.key_size not in RSA_BITS:
        raise ValueError("an RSA key has 2,048 to 4,096 bits")
    return key
