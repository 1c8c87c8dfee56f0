"""Cursors of lists: opaque texts that contain the position of a row in a list."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from app.core import json_text
from app.core.errors import Invalid, Location, value_error
from app.core.validation.scalars import is_storable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NOT_WRITTEN_HERE = "this is not a cursor that a list answered"


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
        raise Invalid(value_error(["query", "cursor"], NOT_WRITTEN_HERE, cursor)) from None
    if raw[24:] != _mark(name):
        reason = "this cursor is of another list or order"
        raise Invalid(value_error(["query", "cursor"], reason, cursor))
    return moment, UUID(bytes=raw[8:24])


def _mark(name: str) -> bytes:
    """Three bytes that differ between lists, so a cursor of another list is refused."""
    return hashlib.sha256(name.encode()).digest()[:3]


def pack(*place: object) -> str:
    """An opaque, URL-safe text with a place in a list of another order."""
    return base64.urlsafe_b64encode(json_text.dumps([str(one) for one in place])).decode()


def unpack(
    cursor: str,
    *kinds: Callable[[str], Any],
    loc: Location = ("query", "cursor"),
    reason: str = NOT_WRITTEN_HERE,
) -> list[Any]:
    """The place that :func:`pack` wrote, each part as its kind; Invalid for any other text."""
    try:
        place = json_text.loads(base64.urlsafe_b64decode(cursor.encode("ascii")).decode())
        if not all(isinstance(one, str) and is_storable(one) for one in place):
            raise ValueError("not written here")
        return [kind(one) for kind, one in zip(kinds, place, strict=True)]
    except (TypeError, ValueError, RecursionError):
        raise Invalid(value_error(loc, reason, cursor)) from None
