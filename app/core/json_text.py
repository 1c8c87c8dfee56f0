"""JSON by orjson, and by the standard library what orjson has not: integers beyond 64 bits.

Requests are read elsewhere, by :mod:`app.core.http.parser`.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.core.clock import rfc3339

ALL_NOUGHTS = bytes.maketrans(b"123456789", b"000000000")
LARGE = b"0" * 19  # digits: perhaps an integer that orjson would make a float of


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; moments in RFC 3339 and ids as text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except TypeError:
        return json.dumps(
            value, default=plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()


def dumps_text(value: Any) -> str:
    """The same as text, for JSON columns."""
    return dumps(value).decode()


def loads(text: str) -> Any:
    """What a JSON column holds."""
    encoded = text.encode()
    if LARGE in encoded.translate(ALL_NOUGHTS):
        return json.loads(text)
    try:
        return orjson.loads(encoded)
    except orjson.JSONDecodeError:  # half of a surrogate pair, a number beyond a float
        return json.loads(text)


def plain(value: Any) -> str:
    """A moment or an id as JSON has it; TypeError for anything else."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")
