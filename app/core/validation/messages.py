"""The entries of a 422's ``detail``: FastAPI's keys, pydantic's texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails, PydanticKnownError, ValidationError, to_json
from pydantic_core.core_schema import ErrorType

from app.core import json_text
from app.core.errors import Entry, Location, error

MAX_ANSWER = 256 * 1024
"""The largest size of a 422's body, in bytes."""

MAX_ENTRIES = 1000
"""The largest number of entries that the validation of a request collects."""

MAX_INPUT = 16 * 1024
"""The largest size of an entry's ``input`` as JSON, in bytes; a larger one is shown as null."""

MAX_TEXT = 1024
"""The most characters of ``msg`` and texts in ``ctx``. A longer one is cut and ends in ``…``."""

MAX_LOC = 4096
"""The most characters of all keys of a ``loc`` together. In a longer one each key is cut."""


def refused(type_: ErrorType, loc: Location, value: object, **ctx: object) -> Entry:
    """The entry for an error type of pydantic, whose message contains the values of ``ctx``."""
    known = PydanticKnownError(type_, ctx or None)
    return error(loc, type_, known.message(), value, known.context)


def entries(fault: ValidationError, *loc: str | int) -> list[Entry]:
    """The entries for an error that pydantic-core raised about the value at ``loc``."""
    return [
        error((*loc, *one["loc"]), one["type"], one["msg"], one["input"], _context(one))
        for one in fault.errors(include_url=False)
    ]


def under(prefix: str | int, found: Iterable[Entry]) -> list[Entry]:
    """Copies of the entries, with ``prefix`` put before each ``loc``."""
    return [{**entry, "loc": [prefix, *entry["loc"]]} for entry in found]


def body(
    found: Iterable[Entry], *, max_bytes: int = MAX_ANSWER, max_input: int = MAX_INPUT
) -> bytes:
    """The JSON body of a 422: as many of the first entries as fit into ``max_bytes``.

    Entries can share one input, such as an object that lacks several fields. It is measured once.
    """
    opening, closing = b'{"detail":[', b"]}"
    inputs: dict[int, Any] = {}
    shown: list[bytes] = []
    left = max_bytes - len(opening + closing)
    for entry in found:
        key = id(entry["input"])
        if key not in inputs:
            inputs[key] = _bounded_input(entry["input"], max_input)
        text = to_json(_cut({**entry, "input": inputs[key]}), inf_nan_mode="null")
        left -= len(text) + 1
        if left < 0:
            break
        shown.append(text)
    return opening + b",".join(shown) + closing


def _context(one: ErrorDetails) -> dict[str, object] | None:
    """The error's ``ctx``. As in FastAPI, an exception in it is replaced by ``{}``."""
    context = one.get("ctx")
    if context is None:
        return None
    return {k: {} if isinstance(v, Exception) else v for k, v in context.items()}


def _bounded_input(value: object, max_input: int) -> object:
    if isinstance(value, str | list | dict) and len(value) > max_input:
        return None
    try:
        return value if json_text.size(value) <= max_input else None
    except ValueError:  # a lone surrogate, or a value that JSON does not have
        return None


def _cut(entry: Entry) -> Entry:
    """The entry with its texts cut, so that even one entry alone fits into an answer."""
    loc, context = entry["loc"], entry.get("ctx", {})
    if sum(len(part) for part in loc if isinstance(part, str)) > MAX_LOC:
        loc = [_shortened(part, MAX_LOC // len(loc)) for part in loc]
    ctx = {"ctx": {name: _shortened(value, MAX_TEXT) for name, value in context.items()}}
    return {**entry, "loc": loc, "msg": _shortened(entry["msg"], MAX_TEXT), **(context and ctx)}


def _shortened(value: Any, length: int) -> Any:
    if isinstance(value, str) and len(value) > length:
        return f"{value[: length - 1]}…"
    return value
