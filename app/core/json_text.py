"""JSON by orjson, or by the standard library for values that orjson refuses or changes.

One such value is an integer beyond 64 bits. :mod:`app.core.http.parser` parses request bodies.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import orjson
from pydantic_core import to_json

from app.core.clock import rfc3339

Json: TypeAlias = Any
"""A JSON value: a dict, list, text, number, boolean or None."""

TO_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LARGE = b"0" * 19  # 19 digits; orjson reads a longer integer, beyond 64 bits, as a float


def dumps(value: object) -> bytes:
    """Compact UTF-8 JSON; datetimes in RFC 3339, UUIDs as text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except TypeError:
        return json.dumps(
            value, default=plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()


def dumps_text(value: object) -> str:
    """Compact JSON as text, for JSON columns."""
    return dumps(value).decode()


def size(value: object) -> int:
    """The length in bytes of the value's compact UTF-8 JSON. Also fast for integers beyond 64 bits.

    Raises ValueError for a lone surrogate and for types that JSON does not have.
    """
    return len(to_json(value))


def loads(text: str) -> Any:
    """Parse the text of a JSON column."""
    encoded = text.encode()
    if LARGE in encoded.translate(TO_ZEROS):
        return json.loads(text)
    try:
        return orjson.loads(encoded)
    except orjson.JSONDecodeError:  # a lone surrogate, a number too large for a float
        return json.loads(text)


def differs(old: object, new: object) -> bool:
    """Whether two values differ when stored as JSON: ``True``, ``1`` and ``1.0`` are different."""
    if type(old) is not type(new) or old != new:
        return True
    return isinstance(old, dict | list) and dumps(old) != dumps(new)


def plain(value: object) -> str:
    """A datetime in RFC 3339 or a UUID as text; TypeError for anything else."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
