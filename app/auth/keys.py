"""API keys: their prefix and the digest that is stored instead of the secret."""

from __future__ import annotations

import hashlib

KEY_PREFIX = "sk_"


def digest_of(secret: str) -> str:
    """The stored form of an API key: SHA-256, in hex (the key has 256 random bits)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
