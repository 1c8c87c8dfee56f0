"""The entries of a 422's ``detail``, in FastAPI's shape and with pydantic's texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails, PydanticKnownError, ValidationError
from pydantic_core.core_schema import ErrorType

from app.core.errors import Entry, Location, error

MAX_ENTRIES = 1000
"""The most entries of one answer, so that a body of 1 MiB cannot cause an answer of 60 MiB."""

MAX_INPUT = 16 * 1024
"""The most bytes of JSON that an entry's ``input`` shows."""


def refused(type_: ErrorType, loc: Location, value: Any, **ctx: Any) -> Entry:
    """The entry of one of pydantic's own error types; ``ctx`` has the values for its text."""
    known = PydanticKnownError(type_, ctx or None)
    return error(loc, type_, known.message(), value, known.context)


def entries(fault: ValidationError, *loc: str | int) -> list[Entry]:
    """The entries of a pydantic-core error, for the value at ``loc``."""
    return [
        error((*loc, *one["loc"]), one["type"], one["msg"], one["input"], _context(one))
        for one in fault.errors(include_url=False)
    ]


def under(prefix: str | int, found: Iterable[Entry]) -> list[Entry]:
    """The entries with ``prefix`` before each ``loc``."""
    return [{**entry, "loc": [prefix, *entry["loc"]]} for entry in found]


def bounded(found: Iterable[Entry]) -> list[Entry]:
    """The entries for an answer: ``input`` is null if it is larger than MAX_INPUT or not JSON.

    Entries often share an input (an object that lacks several fields), which is measured once.
    """
    shown: dict[int, Any] = {}
    answer = []
    for entry in found:
        key = id(entry["input"])
        if key not in shown:
            shown[key] = _shown(entry["input"])
        answer.append({**entry, "input": shown[key]})
    return answer


def _context(one: ErrorDetails) -> dict[str, Any] | None:
    """FastAPI writes an exception in the context as ``{}``."""
    context = one.get("ctx")
    if context is None:
        return None
    return {k: {} if isinstance(v, Exception) else v for k, v in context.items()}


def _shown(value: Any) -> Any:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError):  # NaN, a lone surrogate, or a value that JSON does not have
        return None
    return value if size <= MAX_INPUT else None
