"""The keys that sign deliveries, as Standard Webhooks writes them."""

from __future__ import annotations

import secrets
from base64 import b64encode
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.webhooks.endpoints.models import Signing

SECRET_BYTES = 32


class SigningKey(NamedTuple):
    """``secret`` signs: ``whsec_…`` for v1, ``whsk_…`` for v1a, whose ``public_key`` is ``whpk_…``."""

    secret: str
    public_key: str | None


def new_key(signing: Signing) -> SigningKey:
    if signing is Signing.V1:
        return SigningKey(f"whsec_{_text(secrets.token_bytes(SECRET_BYTES))}", None)
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    return SigningKey(
        f"whsk_{_text(private.private_bytes_raw() + public)}", f"whpk_{_text(public)}"
    )


def _text(key: bytes) -> str:
    return b64encode(key).decode()
