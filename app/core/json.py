"""JSON out: orjson, and the standard library where orjson refuses (integers beyond 64 bits)."""

from __future__ import annotations

import json
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; datetimes and UUIDs are texts already when they come here."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()


def dumps_text(value: Any) -> str:
    """The same as text, for JSON columns."""
    return dumps(value).decode()
