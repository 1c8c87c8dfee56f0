"""Refused values, worded as pydantic words them.

A field refuses a value by raising :func:`refuse`; the schema gathers the refusals in order,
and the request parser turns them into the entries of one 422.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from marshmallow import ValidationError

from app.core.errors import error

ECHO_LIMIT = 16 * 1024
MAX_REFUSALS = 1000
"""One answer lists no more than these, so that a body of 1 MiB cannot ask for one of 60 MiB."""

MESSAGES = {
    "bool_parsing": "Input should be a valid boolean, unable to interpret input",
    "bool_type": "Input should be a valid boolean",
    "datetime_from_date_parsing": "Input should be a valid datetime or date, {error}",
    "datetime_parsing": "Input should be a valid datetime, {error}",
    "datetime_type": "Input should be a valid datetime",
    "dict_type": "Input should be a valid dictionary",
    "enum": "Input should be {expected}",
    "extra_forbidden": "Extra inputs are not permitted",
    "finite_number": "Input should be a finite number",
    "greater_than_equal": "Input should be greater than or equal to {ge}",
    "int_from_float": "Input should be a valid integer, got a number with a fractional part",
    "int_parsing": "Input should be a valid integer, unable to parse string as an integer",
    "int_parsing_size": "Unable to parse input string as an integer, exceeded maximum size",
    "int_type": "Input should be a valid integer",
    "json_invalid": "JSON decode error",
    "less_than_equal": "Input should be less than or equal to {le}",
    "list_type": "Input should be a valid list",
    "literal_error": "Input should be {expected}",
    "missing": "Field required",
    "model_attributes_type": (
        "Input should be a valid dictionary or object to extract fields from"
    ),
    "string_pattern_mismatch": "String should match pattern '{pattern}'",
    "string_too_long": "String should have at most {max_length} character{plural}",
    "string_too_short": "String should have at least {min_length} character{plural}",
    "string_type": "Input should be a valid string",
    "string_unicode": (
        "Input should be a valid string, unable to parse raw data as a unicode string"
    ),
    "timezone_aware": "Input should have timezone info",
    "uuid_parsing": "Input should be a valid UUID, {error}",
    "uuid_type": "UUID input should be a string, bytes or UUID object",
    "value_error": "value is not a valid email address: {reason}",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused value and where it stands below what was loaded."""

    type: str
    msg: str
    value: Any
    ctx: Mapping[str, Any] | None = None
    loc: tuple[str | int, ...] = ()

    def under(self, *prefix: str | int) -> Refusal:
        """The same refusal, seen from further up."""
        return replace(self, loc=(*prefix, *self.loc))

    def entry(self) -> dict[str, Any]:
        """Its entry in the ``detail`` of a 422."""
        return error(self.loc, self.type, self.msg, self.value, self.ctx)


def refusal(type_: str, value: Any, **ctx: Any) -> Refusal:
    """``value`` refused with pydantic's words for ``type_``; ``ctx`` fills them in and is shown."""
    bound = next(iter(ctx.values()), None)
    msg = MESSAGES[type_].format(**ctx, plural="" if bound == 1 else "s")
    return Refusal(type_, msg, value, ctx or None)


def refuse(type_: str, value: Any, **ctx: Any) -> ValidationError:
    """The exception with which a field refuses ``value``."""
    return ValidationError([refusal(type_, value, **ctx)])


def refusals(error: ValidationError, value: Any) -> Iterator[Refusal]:
    """What ``error`` refuses; a plain text, as marshmallow's validators raise it, is a value_error."""
    messages = error.messages
    for message in messages if isinstance(messages, list) else [messages]:
        if isinstance(message, Refusal):
            yield message
        else:
            yield Refusal("value_error", f"Value error, {message}", value, {"error": message})


def echo(value: Any) -> Any:
    """``value`` as ``input`` shows it: null where JSON cannot carry it or takes over 16 KiB."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError):  # NaN, a lone surrogate, or no JSON at all
        return None
    return value if size <= ECHO_LIMIT else None
