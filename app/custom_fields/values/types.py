"""The type rules: what a value of each FieldType is.

Each function returns the value, parsed, or raises the refusal. Nothing is coerced, since values
are stored as they were sent: ``"5"`` is no integer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import phonenumbers
from marshmallow import ValidationError

from app.core.validation.messages import Refusal, refusals, refuse
from app.core.validation.moments import to_moment
from app.core.validation.scalars import BIGINT, to_email
from app.custom_fields.models import FieldType

DECIMAL_PATTERN = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})$"
DECIMAL_BOUND = 1e30  # numbers are smaller than this in magnitude
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

Parse = Callable[[Any], Any]


def to_text(value: Any) -> str:
    """Any string."""
    if not isinstance(value, str):
        raise refuse("string_type", value)
    return value


def to_integer(value: Any) -> int:
    """A JSON number without a fraction (5.0 is one) within 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse("int_type", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse("finite_number", value)
        if not value.is_integer():
            raise refuse("int_from_float", value)
    if int(value) not in BIGINT:
        raise refuse("int_parsing_size", value)
    return int(value)


def to_decimal(value: Any) -> Decimal:
    """A JSON number, or text such as ``"12.50"``, exactly; below 1e30, no exponent in text."""
    if isinstance(value, str):
        if _DECIMAL.match(value) is None:
            raise _refused("decimal_parsing", "Input should be a valid decimal", value)
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = "Decimal input should be an integer, float, string or Decimal object"
        raise _refused("decimal_type", message, value)
    if isinstance(value, float) and not math.isfinite(value):
        raise refuse("finite_number", value)
    if not -DECIMAL_BOUND < value < DECIMAL_BOUND:
        message = "Decimal input should have no more than 30 digits before the decimal point"
        raise _refused("decimal_whole_digits", message, value, whole_digits=30)
    return Decimal(repr(value))


def to_boolean(value: Any) -> bool:
    """JSON true or false."""
    if not isinstance(value, bool):
        raise refuse("bool_type", value)
    return value


def to_date(value: Any) -> date:
    """``YYYY-MM-DD``."""
    if not isinstance(value, str):
        raise _refused("date_type", "Input should be a valid date", value)
    if _DATE.match(value) is None:
        raise _bad_date(value, "it is not written YYYY-MM-DD")
    try:
        return date.fromisoformat(value)
    except ValueError as reason:
        raise _bad_date(value, str(reason)) from None


def to_datetime(value: Any) -> datetime:
    """RFC 3339 with ``T`` and an offset or ``Z``; in UTC."""
    if not isinstance(value, str):
        raise refuse("datetime_type", value)
    moment = to_moment(value)
    if _DATETIME.match(value) is None:
        reason = "it is not written YYYY-MM-DDThh:mm:ss with an offset"
        raise refuse("datetime_from_date_parsing", value, error=reason)
    return moment


def to_address(value: Any) -> str:
    """An e-mail address, alone; ``Ada <ada@example.com>`` is none."""
    if not isinstance(value, str):
        raise refuse("string_type", value)
    to_email(value)
    if "<" in value or value != value.strip():
        reason = "An address stands alone, without a name or blanks around it."
        raise refuse("value_error", value, reason=reason)
    return value


def to_url(value: Any) -> str:
    """An absolute http or https URL."""
    if not isinstance(value, str):
        raise refuse("string_type", value)
    if _URL.match(value) is None or _NOT_IN_A_URL.search(value) or not _has_host(value):
        raise _value_error("this is not an http or https URL", value)
    return value


def to_phone(value: Any) -> str:
    """A phone number in E.164 (``+4930123456``) that its country's numbering plan has."""
    if not isinstance(value, str):
        raise refuse("string_type", value)
    if _PHONE.match(value) is None or not _is_assigned(value):
        raise _value_error("this is not a phone number in E.164, such as +4930901820", value)
    return value


def to_option(value: Any, options: Sequence[str]) -> str:
    """One of the options, exactly."""
    if not isinstance(value, str) or value not in options:
        expected = _listed(options)
        raise _refused("enum", f"Input should be {expected}", value, expected=expected)
    return value


def to_options(value: Any, options: Sequence[str]) -> list[str]:
    """A list of options, none twice."""
    if not isinstance(value, list):
        raise refuse("list_type", value)
    found: list[Refusal] = []
    for index, item in enumerate(value):
        try:
            to_option(item, options)
        except ValidationError as fault:
            found += [one.under(index) for one in refusals(fault, item)]
    if found:
        raise ValidationError(found)
    if len(set(value)) < len(value):
        raise _value_error("an option is there twice", value)
    return value


PARSERS: dict[FieldType, Parse] = {
    FieldType.TEXT: to_text,
    FieldType.LONG_TEXT: to_text,
    FieldType.INTEGER: to_integer,
    FieldType.DECIMAL: to_decimal,
    FieldType.BOOLEAN: to_boolean,
    FieldType.DATE: to_date,
    FieldType.DATETIME: to_datetime,
    FieldType.EMAIL: to_address,
    FieldType.URL: to_url,
    FieldType.PHONE: to_phone,
}


def check(field_type: FieldType, options: Sequence[str] | None, value: Any) -> None:
    """Raise the refusals (:class:`marshmallow.ValidationError`) of a value that does not fit."""
    if field_type == FieldType.SELECT:
        to_option(value, options or ())
    elif field_type == FieldType.MULTI_SELECT:
        to_options(value, options or ())
    else:
        PARSERS[field_type](value)


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


def _listed(options: Sequence[str]) -> str:
    if not options:
        return "one of the field's options, which has none"
    *others, last = map(repr, options)
    return f"{', '.join(others)} or {last}" if others else last


def _bad_date(value: str, reason: str) -> ValidationError:
    message = f"Input should be a valid date or datetime, {reason}"
    return _refused("date_from_datetime_parsing", message, value, error=reason)


def _value_error(reason: str, value: Any) -> ValidationError:
    return _refused("value_error", f"Value error, {reason}", value, error={})


def _refused(type_: str, message: str, value: Any, **ctx: Any) -> ValidationError:
    return ValidationError([Refusal(type_, message, value, ctx or None)])
