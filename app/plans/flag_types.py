"""The types of flags, and checks of a value against a type."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pydantic_core.core_schema import ErrorType

from app.core import json_text
from app.core.errors import Entry, Location, value_error
from app.core.validation.messages import refused

MAX_VALUE_BYTES = 20_000
"""The largest size of a flag's value, as compact UTF-8 JSON."""

UNLIMITED = -1
MAX_LIMIT = 10**15


class FlagType(StrEnum):
    """``json`` is any JSON value. Each other type is only that type of JSON value.

    A ``limit`` is an integer up to :data:`MAX_LIMIT`, or :data:`UNLIMITED`; what tenants use of it
    is counted.
    """

    BOOLEAN = "boolean"
    STRING = "string"
    NUMBER = "number"
    JSON = "json"
    LIMIT = "limit"


class Period(StrEnum):
    """When the count of a limit starts anew; ``none``: never."""

    NONE = "none"
    DAY = "day"
    MONTH = "month"
    BILLING_CYCLE = "billing_cycle"


class Policy(StrEnum):
    """Whether more than the limit is refused (``hard``) or counted (``soft``)."""

    HARD = "hard"
    SOFT = "soft"


class LimitKind(StrEnum):
    """``credits``: the limit is a balance, to which the plan grants its value in each period."""

    CREDITS = "credits"


class Rollover(StrEnum):
    """Which credits of the plan outlast their period; ``cap``: at most ``rollover_cap``."""

    NONE = "none"
    ALL = "all"
    CAP = "cap"


ERROR_TYPES: dict[FlagType, ErrorType] = {
    FlagType.BOOLEAN: "bool_type",
    FlagType.STRING: "string_type",
    FlagType.NUMBER: "float_type",
    FlagType.LIMIT: "int_type",
}


def fits(flag_type: str, value: Any) -> bool:
    """Whether ``value`` has the type, without any conversion."""
    match flag_type:
        case FlagType.BOOLEAN:
            return isinstance(value, bool)
        case FlagType.STRING:
            return isinstance(value, str)
        case FlagType.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case FlagType.LIMIT:
            return type(value) is int and UNLIMITED <= value <= MAX_LIMIT
    return True


def type_errors(flag_type: FlagType, value: Any, loc: Location) -> Iterator[Entry]:
    if fits(flag_type, value):
        return
    if flag_type is FlagType.LIMIT and type(value) is int:
        reason = f"a limit is from 0 to {MAX_LIMIT}, or {UNLIMITED} for unlimited"
        yield value_error(loc, reason, value)
    else:
        yield refused(ERROR_TYPES[flag_type], loc, value)


def is_too_long(value: Any) -> bool:
    return json_text.size(value) > MAX_VALUE_BYTES
