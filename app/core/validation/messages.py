"""The entries of a 422's ``detail``, in FastAPI's shape and with pydantic's texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails, PydanticKnownError, ValidationError, to_json
from pydantic_core.core_schema import ErrorType

from app.core import json_text
from app.core.errors import Entry, Location, error

MAX_ANSWER = 256 * 1024
"""The most bytes of a 422's body."""

MAX_ENTRIES = 1000
"""The most entries that the check of one body collects."""

MAX_INPUT = 16 * 1024
"""The most bytes of JSON that an entry's ``input`` shows; beyond, it is null."""

MAX_TEXT = 1024
"""The most characters of ``msg`` and of a text in ``ctx``; a longer one is cut and ends in ``…``."""

MAX_LOC = 4096
"""The most characters of all keys in a ``loc``. In a longer one each key is cut equally."""


def refused(type_: ErrorType, loc: Location, value: object, **ctx: object) -> Entry:
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


def body(
    found: Iterable[Entry], *, max_bytes: int = MAX_ANSWER, max_input: int = MAX_INPUT
) -> bytes:
    """The JSON of a 422: the first entries, within these and the other limits.

    Entries often share an input (an object that lacks several fields), which is measured once.
    """
    opening, closing = b'{"detail":[', b"]}"
    inputs: dict[int, Any] = {}
    shown: list[bytes] = []
    left = max_bytes - len(opening + closing)
    for entry in found:
        key = id(entry["input"])
        if key not in inputs:
            inputs[key] = _shown(entry["input"], max_input)
        text = to_json(_cut({**entry, "input": inputs[key]}), inf_nan_mode="null")
        left -= len(text) + 1
        if left < 0:
            break
        shown.append(text)
    return opening + b",".join(shown) + closing


def _context(one: ErrorDetails) -> dict[str, object] | None:
    """The error's ``ctx``, with ``{}`` in place of an exception, as FastAPI answers it."""
    context = one.get("ctx")
    if context is None:
        return None
    return {k: {} if isinstance(v, Exception) else v for k, v in context.items()}


def _shown(value: object, max_input: int) -> object:
    if isinstance(value, str | list | dict) and len(value) > max_input:
        return None
    try:
        return value if json_text.size(value) <= max_input else None
    except ValueError:  # a lone surrogate, or a value that JSON does not have
        return None


def _cut(entry: Entry) -> Entry:
    """The entry with texts of limited length, so that each one fits into an answer."""
    cut = {
        **entry,
        "loc": _loc(entry["loc"]),
        "msg": _shortened(entry["msg"], MAX_TEXT),
    }
    if "ctx" in entry:
        cut["ctx"] = {name: _shortened(value, MAX_TEXT) for name, value in entry["ctx"].items()}
    return cut


def _loc(loc: Location) -> Location:
    if sum(len(part) for part in loc if isinstance(part, str)) <= MAX_LOC:
        return loc
    return [_shortened(part, MAX_LOC // len(loc)) for part in loc]


def _shortened(value: Any, length: int) -> Any:
    if isinstance(value, str) and len(value) > length:
        return f"{value[: length - 1]}…"
    return value
