"""Cursors of lists: opaque texts that contain the position of a row in a list."""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from app.core.errors import Invalid, value_error

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def make_cursor(name: str, row: Any) -> str:
    """An opaque, URL-safe text with the position of ``row`` in the list ``name``."""
    micros = (row.created_at - EPOCH) // MICROSECOND
    raw = micros.to_bytes(8) + UUID(str(row.id)).bytes + _mark(name)
    return base64.urlsafe_b64encode(raw).decode()


def read_cursor(name: str, cursor: str) -> tuple[datetime, UUID]:
    """Return ``created_at`` and id from a cursor of the list ``name``; Invalid for other texts."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii"))
        if len(raw) != 27 or base64.urlsafe_b64encode(raw).decode() != cursor:
            raise ValueError("not written here")
        moment = EPOCH + int.from_bytes(raw[:8]) * MICROSECOND
    except (ValueError, OverflowError, binascii.Error):
        reason = "this is not a cursor that a list answered"
        raise Invalid(value_error(["query", "cursor"], reason, cursor)) from None
    if raw[24:] != _mark(name):
        reason = "this cursor is of another list or order"
        raise Invalid(value_error(["query", "cursor"], reason, cursor))
    return moment, UUID(bytes=raw[8:24])


def _mark(name: str) -> bytes:
    """Three bytes that differ between lists, so a cursor of another list is refused."""
    return hashlib.sha256(name.encode()).digest()[:3]
