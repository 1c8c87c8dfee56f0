"""Schemas of pydantic-core that convert as FastAPI does, and refuse what PostgreSQL cannot store.

A field's own constraints are checked first. Then text with U+0000 or a lone surrogate is refused as
``string_unicode``, and an integer beyond bigint as ``int_parsing_size``.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from email_validator import EmailNotValidError, validate_email
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema
from pydantic_core.core_schema import CoreSchema, ErrorType

from app.core.errors import Entry, Invalid
from app.core.validation.messages import MAX_ENTRIES, refused

T = TypeVar("T")
_Fault = tuple[list[str | int], ErrorType, Any]  # path (innermost key first), type, value
_PLAIN = frozenset({bool, int})

log = logging.getLogger(__name__)

BIGINT = range(-(2**63), 2**63)
MAX_ADDRESS = 2048  # characters of an e-mail address; pydantic's limit
MAX_NAME = 255  # characters of a name
NO_CONTROLS = r"^[^\x01-\x1F\x7F-\x9F]*$"  # for names; _storable() refuses U+0000
CONTROL = re.compile(r"[\x00-\x1F\x7F-\x9F]")
NAMED_ADDRESS = re.compile(r"(?:[\w\s.!#$%&'*+\-/=?^`{|}~]*|\s*\".+\"\s*)<(.+)>\s*")


def text(
    *, min_length: int | None = None, max_length: int | None = None, pattern: str | None = None
) -> CoreSchema:
    """A string, neither trimmed nor converted. Lengths are in code points.

    ``pattern`` is a Rust regular expression that may match anywhere. ``$`` matches the end only.
    """
    string = core_schema.str_schema(min_length=min_length, max_length=max_length, pattern=pattern)
    return core_schema.no_info_after_validator_function(_storable, string)


def integer(*, ge: int | None = None, le: int | None = None) -> CoreSchema:
    """An integer within bigint. Integral floats, booleans and decimal text are converted."""
    number = core_schema.int_schema(ge=ge, le=le)
    return core_schema.no_info_after_validator_function(_within_bigint, number)


def aware_datetime() -> CoreSchema:
    """A datetime in UTC, from RFC 3339 with an offset, or from Unix time.

    Unix time is in seconds. A number beyond ±2e10 is in milliseconds.
    """
    moment = core_schema.datetime_schema(tz_constraint="aware")
    return core_schema.no_info_after_validator_function(_in_utc, moment)


def email() -> CoreSchema:
    """An e-mail address ``a@b.co`` or ``Name <a@b.co>``, normalized. DNS is not asked."""
    return core_schema.no_info_after_validator_function(_address, core_schema.str_schema())


def address_or_empty(value: str) -> str:
    """A provider's address in its own case; ``""``, and a log line, if :func:`email` refuses it."""
    try:
        address = _address(value) if value else ""
    except (PydanticCustomError, PydanticKnownError):
        log.warning("address_left_out")
        return ""
    return value if value.lower() == address.lower() else address


def bounded_name(value: str) -> str:
    """A provider's name, cut to MAX_NAME and without control characters; a change is logged."""
    name = CONTROL.sub(" ", value)
    name = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    if name != value:
        log.warning("name_changed", extra={"length": len(value)})
    return name


def is_storable(value: str) -> bool:
    """Whether PostgreSQL can store the text: it has no U+0000 and no lone surrogate."""
    return "\x00" not in value and is_unicode(value)


def is_unicode(value: str) -> bool:
    """Whether the text can be encoded as UTF-8: it has no lone surrogate."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def unstorable(value: object) -> list[Entry]:
    """The parts of a JSON value that PostgreSQL cannot store, at most :data:`MAX_ENTRIES` entries.

    Such parts are NaN, Infinity, and texts and keys for which :func:`is_storable` is False.
    """
    return [refused(type_, path[::-1], part) for path, type_, part in _unstorable(value)]


def storable(value: T) -> T:
    """The value; raises Invalid where :func:`unstorable` finds a part of it."""
    if found := unstorable(value):
        raise Invalid(*found)
    return value


def _unstorable(value: object) -> list[_Fault]:
    """Do the work of :func:`unstorable` with few calls, as 1 MiB can have half a million values."""
    if isinstance(value, str):
        return [] if is_storable(value) else [([], "string_unicode", value)]
    if isinstance(value, float):
        return [] if math.isfinite(value) else [([], "finite_number", value)]
    if not isinstance(value, dict | list):
        return []
    steps: Iterable[tuple[Any, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value)
    )
    found: list[_Fault] = []
    for step, item in steps:
        if type(step) is str and not is_storable(step):
            found.append(([], "string_unicode", step))
        elif (
            not item
            or type(item) in _PLAIN
            or (type(item) is str and item.isascii() and "\x00" not in item)
        ):
            continue
        else:
            for fault in _unstorable(item):
                fault[0].append(step)
                found.append(fault)
        if len(found) >= MAX_ENTRIES:
            break
    return found[:MAX_ENTRIES]


def _storable(value: str) -> str:
    if is_storable(value):
        return value
    raise PydanticKnownError("string_unicode")


def _within_bigint(value: int) -> int:
    if value in BIGINT:
        return value
    raise PydanticKnownError("int_parsing_size")


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        year = 0 if value.year == 1 else 10000
        fault = {"error": f"year {year} is out of range"}
        raise PydanticKnownError("datetime_parsing", fault) from None


def _address(value: str) -> str:
    if not is_unicode(value):
        raise PydanticKnownError("string_unicode")
    if len(value) > MAX_ADDRESS:
        raise bad_address(f"Length must not exceed {MAX_ADDRESS} characters")
    if "\r" in value or "\n" in value:
        raise bad_address("Carriage return and line feed characters are not allowed")
    if "=?" in value:  # the header of a mail would decode it, perhaps to another address
        raise bad_address("Encoded words (RFC 2047) are not allowed")
    named = NAMED_ADDRESS.fullmatch(value) if value.rstrip().endswith(">") else None
    address = (named[1] if named else value).strip()
    try:
        return validate_email(address, check_deliverability=False).normalized
    except EmailNotValidError as fault:
        raise bad_address(str(fault)) from None


def bad_address(reason: str) -> PydanticCustomError:
    text = "value is not a valid email address: {reason}"
    return PydanticCustomError("value_error", text, {"reason": reason})
