"""The values that each FieldType accepts.

Values are stored as they were sent, so nothing is converted: ``"5"`` is not an integer. The
validators return the value parsed, for the search index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from urllib.parse import urlsplit

import phonenumbers
from pydantic_core import PydanticKnownError, SchemaValidator, ValidationError, core_schema
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from app.core.errors import Entry, Location, value_error
from app.core.validation import scalars
from app.core.validation.messages import MAX_ENTRIES, MAX_TEXT, entries, refused
from app.custom_fields.models import FieldType

MAX_LISTED = 50
"""The error for a value that is no option lists at most so many options."""

MAX_ADDRESS = 320
"""The most characters of an e-mail address. Without a limit the parser would be slow."""

DECIMAL_PATTERN = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})$"
DECIMAL_BOUND = 1e30  # the magnitude of a number is below this
DATE_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
DATETIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]"
PHONE_PATTERN = r"^\+[1-9][0-9]{1,14}$"

_DECIMAL, _DATE, _DATETIME, _URL, _PHONE = (
    re.compile(re.sub(r"\$$", r"\\Z", pattern))
    for pattern in (DECIMAL_PATTERN, DATE_PATTERN, DATETIME_PATTERN, URL_PATTERN, PHONE_PATTERN)
)
_NOT_IN_A_URL = re.compile(r'[\s\x00-\x20\x7f<>"{}|\\^`]')


def faults(
    field_type: FieldType, options: Sequence[str] | None, value: Any, loc: Location
) -> Iterator[Entry]:
    """The entries of a 422, at ``loc``, for a value that the type or the options do not allow."""
    if field_type == FieldType.SELECT:
        yield from _option_faults(value, options or (), loc)
    elif field_type == FieldType.MULTI_SELECT:
        yield from _options_faults(value, options or (), loc)
    else:
        try:
            VALIDATORS[field_type].validate_python(value)
        except ValidationError as fault:
            yield from entries(fault, *loc)


def _option_faults(value: Any, options: Sequence[str], loc: Location) -> Iterator[Entry]:
    if not isinstance(value, str) or value not in options:
        yield refused("enum", loc, value, expected=_listed(options))


def _options_faults(value: Any, options: Sequence[str], loc: Location) -> Iterator[Entry]:
    if not isinstance(value, list):
        yield refused("list_type", loc, value)
        return
    known = frozenset(options)
    unknown = (i for i, item in enumerate(value) if not isinstance(item, str) or item not in known)
    first = next(unknown, None)
    if first is not None:
        expected = _listed(options)[: MAX_TEXT + 1]  # more is not shown
        for index in islice(chain([first], unknown), MAX_ENTRIES):
            yield refused("enum", (*loc, index), value[index], expected=expected)
    elif len(set(value)) < len(value):
        yield value_error(loc, "an option is there twice", value)


def _listed(options: Sequence[str]) -> str:
    """The options as pydantic lists the members of an enumeration; the first, if there are many."""
    if not options:
        return "one of the field's options, which has none"
    shown = [repr(option[:MAX_TEXT]) for option in options[:MAX_LISTED]]
    if len(options) > MAX_LISTED:
        return f"{', '.join(shown)} or {len(options) - MAX_LISTED} others"
    *others, last = shown
    return f"{', '.join(others)} or {last}" if others else last


def _number(value: Any) -> Any:
    """A JSON number; a fraction is refused afterwards."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticKnownError("int_type")
    return value


def _decimal(value: Any) -> Decimal:
    """A JSON number, or text such as ``"12.50"`` without an exponent; exact, below 1e30."""
    if isinstance(value, str):
        if _DECIMAL.match(value) is None:
            raise PydanticKnownError("decimal_parsing")
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticKnownError("decimal_type")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticKnownError("finite_number")
    if not -DECIMAL_BOUND < value < DECIMAL_BOUND:
        raise PydanticKnownError("decimal_whole_digits", {"whole_digits": 30})
    return Decimal(repr(value))


def _date(value: Any) -> date:
    """``YYYY-MM-DD``."""
    if not isinstance(value, str):
        raise PydanticKnownError("date_type")
    if _DATE.match(value) is None:
        raise _bad_date("it is not written YYYY-MM-DD")
    try:
        return date.fromisoformat(value)
    except ValueError as reason:
        raise _bad_date(str(reason)) from None


def _bad_date(reason: str) -> PydanticKnownError:
    return PydanticKnownError("date_from_datetime_parsing", {"error": reason})


def _datetime(value: Any, handler: ValidatorFunctionWrapHandler) -> datetime:
    """RFC 3339 with ``T`` and an offset or ``Z``; in UTC."""
    if not isinstance(value, str):
        raise PydanticKnownError("datetime_type")
    moment: datetime = handler(value)
    if _DATETIME.match(value) is None:
        reason = "it is not written YYYY-MM-DDThh:mm:ss with an offset"
        raise PydanticKnownError("datetime_from_date_parsing", {"error": reason})
    return moment


def _email(value: Any, handler: ValidatorFunctionWrapHandler) -> str:
    """An e-mail address without a name or blanks around it; not normalized."""
    if isinstance(value, str) and len(value) > MAX_ADDRESS:
        raise scalars.bad_address(f"Length must not exceed {MAX_ADDRESS} characters")
    handler(value)
    if "<" in value or value != value.strip():
        raise scalars.bad_address("An address stands alone, without a name or blanks around it.")
    return str(value)


def _url(value: str) -> str:
    """An absolute http or https URL."""
    if _URL.match(value) is None or _NOT_IN_A_URL.search(value) or not _has_host(value):
        raise ValueError("this is not an http or https URL")
    return value


def _phone(value: str) -> str:
    """A phone number in E.164 (``+4930123456``) that its country's numbering plan has."""
    if _PHONE.match(value) is None or not _is_assigned(value):
        raise ValueError("this is not a phone number in E.164, such as +4930901820")
    return value


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_assigned(number: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return False


_STRING = core_schema.str_schema()
_SCHEMAS = {
    FieldType.TEXT: _STRING,
    FieldType.LONG_TEXT: _STRING,
    FieldType.INTEGER: core_schema.no_info_before_validator_function(_number, scalars.integer()),
    FieldType.DECIMAL: core_schema.no_info_plain_validator_function(_decimal),
    FieldType.BOOLEAN: core_schema.bool_schema(strict=True),
    FieldType.DATE: core_schema.no_info_plain_validator_function(_date),
    FieldType.DATETIME: core_schema.no_info_wrap_validator_function(
        _datetime, scalars.aware_datetime()
    ),
    FieldType.EMAIL: core_schema.no_info_wrap_validator_function(_email, scalars.email()),
    FieldType.URL: core_schema.no_info_after_validator_function(_url, _STRING),
    FieldType.PHONE: core_schema.no_info_after_validator_function(_phone, _STRING),
}
VALIDATORS = {field_type: SchemaValidator(schema) for field_type, schema in _SCHEMAS.items()}
"""For every type but the selects, whose options are the field's."""
