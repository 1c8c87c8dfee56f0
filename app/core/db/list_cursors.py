"""Cursors of lists: opaque texts that name the place of a row in a list's order."""

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
    """An opaque, URL-safe text that names the place of ``row`` in the list ``name``."""
    micros = (row.created_at - EPOCH) // MICROSECOND
    raw = micros.to_bytes(8) + UUID(str(row.id)).bytes + _mark(name)
    return base64.urlsafe_b64encode(raw).decode()


def read_cursor(name: str, cursor: str) -> tuple[datetime, UUID]:
    """The place that :func:`make_cursor` wrote for the same list; Invalid for any other text."""
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
    """Three bytes by which a cursor of another list is recognized."""
    return hashlib.sha256(name.encode()).digest()[:3]
