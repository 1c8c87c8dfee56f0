"""A tenant's cursors: encrypted positions, because plain ones would tell others' volume."""

from __future__ import annotations

import base64
import binascii
import secrets
from functools import lru_cache
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from app.core.errors import Invalid, value_error

AFTER = ("query", "after")
cipher = lru_cache(maxsize=4)(AESSIV)


NONCE_SIZE = 6  # bytes; with it a cursor needs no padding in base 64


def make_cursor(key: bytes, tenant_id: UUID, position: int, *, is_event: bool = True) -> str:
    """The position as an opaque, URL-safe text.

    That of an event is always the same. Any other is a new text each time, so it does not tell
    whether others' events have taken positions since the last one.
    """
    nonce = bytes(NONCE_SIZE) if is_event else secrets.token_bytes(NONCE_SIZE)
    sealed = cipher(key).encrypt(position.to_bytes(8), [tenant_id.bytes, nonce])
    return base64.urlsafe_b64encode(nonce + sealed).decode()


def read_cursor(key: bytes, tenant_id: UUID, cursor: str) -> int:
    """The position; raises Invalid for a text that is no cursor of this tenant."""
    try:
        sealed = base64.urlsafe_b64decode(cursor.encode("ascii"))
        nonce, sealed = sealed[:NONCE_SIZE], sealed[NONCE_SIZE:]
        return int.from_bytes(cipher(key).decrypt(sealed, [tenant_id.bytes, nonce]))
    except (ValueError, binascii.Error, InvalidTag):
        reason = "this is no position that the feed has shown to this tenant; send its next_cursor"
        raise Invalid(value_error(AFTER, reason, cursor)) from None


def read_position(text: str) -> int:
    """The position that a platform credential sent; raises Invalid for any other text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Invalid(
            value_error(AFTER, "this is no position; send the next_cursor of an answer", text)
        )
    return int(text)
