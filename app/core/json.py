"""JSON: orjson, and the standard library where orjson refuses or would round (long numbers)."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

LONG_NUMBER = re.compile(r"\d{19}")  # an integer beyond 64 bits has that many digits, or more


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; datetimes and UUIDs are texts already when they come here."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()


def loads(text: str) -> Any:
    """The value of a JSON column; integers of any length stay exact."""
    if LONG_NUMBER.search(text) is None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # a lone surrogate, say, which PostgreSQL's json type takes
    return json.loads(text)


def dumps_text(value: Any) -> str:
    """The same as text, for JSON columns."""
    return dumps(value).decode()
