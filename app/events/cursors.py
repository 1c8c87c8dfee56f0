"""A tenant's cursors: encrypted positions, because plain ones would tell others' volume."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from app.core.errors import Invalid, value_error

AFTER = ("query", "after")
cipher = lru_cache(maxsize=4)(AESSIV)


def make_cursor(key: bytes, tenant_id: UUID, position: int) -> str:
    """The position as an opaque, URL-safe text; always the same for one tenant and position."""
    sealed = cipher(key).encrypt(position.to_bytes(8), [tenant_id.bytes])
    return base64.urlsafe_b64encode(sealed).decode()


def read_cursor(key: bytes, tenant_id: UUID, cursor: str) -> int:
    """The position; raises Invalid for a text that is no cursor of this tenant."""
    try:
        sealed = base64.urlsafe_b64decode(cursor.encode("ascii"))
        return int.from_bytes(cipher(key).decrypt(sealed, [tenant_id.bytes]))
    except (ValueError, binascii.Error, InvalidTag):
        reason = "this is no position that the feed has shown to this tenant"
        raise Invalid(value_error(AFTER, reason, cursor)) from None


def read_position(text: str) -> int:
    """The position that a platform credential sent; raises Invalid for any other text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Invalid(value_error(AFTER, "this is no position", text))
    return int(text)
