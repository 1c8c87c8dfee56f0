"""RFC 3339 and Unix time, read as pydantic's aware datetimes are.

``2024-01-15T10:30:00Z`` and its lenient spellings, or Unix time as a number or as text: seconds,
and milliseconds beyond ±2e10. The refusals of a text that is neither are a verdict on its first
ten bytes as a date.
"""

from __future__ import annotations

import calendar
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from marshmallow import ValidationError

from app.core.validation.messages import refuse
from app.core.validation.scalars import BIGINT

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?:[Zz]|([+\-\N{MINUS SIGN}])(\d\d):?(\d\d))?",
    re.ASCII,
)
_COMMON = re.compile(  # what datetime.fromisoformat reads alike in every Python version
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3}(?:\d{3})?)?"
    r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_UNIX_TEXT = re.compile(r"[+-]?(?:\d+|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_167_219_200_000  # year 0, in milliseconds
_YEAR_1 = -62_135_596_800_000
_LAST = 253_402_300_799_999
_MILLISECONDS_BEYOND = 20_000_000_000
_MAX_DIGITS = 4300

_TOO_LATE = "dates after 9999 are not supported as unix timestamps"
_TOO_EARLY = "dates before 0000 are not supported as unix timestamps"
_YEAR_0 = "year 0 is out of range"


class _OutOfRangeError(ValueError):
    """Unix time outside of the years that there are."""


def to_moment(value: Any) -> datetime:
    """The moment, aware, in UTC; one that UTC cannot write is refused too."""
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse("datetime_type", value)
    try:
        return _from_unix_time(value)
    except _OutOfRangeError as fault:
        raise refuse("datetime_parsing", value, error=str(fault)) from None


def _from_text(value: str) -> datetime:
    if _COMMON.fullmatch(value) is not None:
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # no such day, or no such moment in UTC: the long way tells which
    match = _RFC3339.fullmatch(value)
    if match is not None and _is_calendar_time(match):
        return _from_parts(value, match)
    if _UNIX_TEXT.fullmatch(value) is not None:
        return _from_unix_text(value)
    raise _no_moment(value)


def _is_calendar_time(match: re.Match[str]) -> bool:
    year, month, day, hour, minute = (int(part) for part in match.group(1, 2, 3, 4, 5))
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour < 24 and minute < 60):
        return False
    return int(match[6] or 0) < 60 and int(match[9] or 0) < 24 and int(match[10] or 0) < 60


def _from_parts(value: str, match: re.Match[str]) -> datetime:
    year, month, day, hour, minute = (int(part) for part in match.group(1, 2, 3, 4, 5))
    if value[-1] not in "Zz" and match[8] is None:
        raise refuse("timezone_aware", value)
    if year == 0:
        raise refuse("datetime_parsing", value, error=_YEAR_0)
    microsecond = int((match[7] or "0")[:6].ljust(6, "0"))
    offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
    zone = timezone(offset if match[8] in (None, "+") else -offset)
    moment = datetime(year, month, day, hour, minute, int(match[6] or 0), microsecond, zone)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        edge = 0 if year == 1 else 10000
        raise refuse("datetime_parsing", value, error=f"year {edge} is out of range") from None


def _from_unix_text(value: str) -> datetime:
    is_float = "." in value
    if not is_float and (len(value) > _MAX_DIGITS or int(value) not in BIGINT):
        raise _no_moment(value)
    try:
        return _from_unix_time(float(value) if is_float else int(value))
    except _OutOfRangeError as fault:
        if str(fault) == _YEAR_0:
            raise refuse("datetime_parsing", value, error=_YEAR_0) from None
        raise _no_moment(value) if is_float else _not_a_date(value, str(fault)) from None


def _from_unix_time(number: float) -> datetime:
    if isinstance(number, float) and math.isnan(number):
        raise _OutOfRangeError("NaN values not permitted")
    scale = 1000 if abs(number) > _MILLISECONDS_BEYOND else 1
    if number * (1000 // scale) > _LAST + 1:
        raise _OutOfRangeError(_TOO_LATE)
    if number * (1000 // scale) < _FIRST:
        raise _OutOfRangeError(_TOO_EARLY)
    whole = math.floor(number)
    micros = whole * (1_000_000 // scale) + _round((number - whole) * (1_000_000 // scale))
    if micros < _YEAR_1 * 1000:
        raise _OutOfRangeError(_YEAR_0)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise _OutOfRangeError(_TOO_LATE) from None


def _round(number: float) -> int:
    return math.floor(number + 0.5)


def _days_in(year: int, month: int) -> int:
    return calendar.monthrange(year or 2000, month)[1]


def _date_fault(text: bytes) -> str | None:
    """Why ``text`` is no date, in the order in which pydantic looks; None if it is one."""
    if len(text) < 10:
        return "input is too short"
    for part, name in ((slice(0, 4), "year"), (slice(5, 7), "month"), (slice(8, 10), "day")):
        if not text[part].isdigit():
            return f"invalid character in {name}"
        if name != "day" and text[part.stop : part.stop + 1] != b"-":
            return "invalid date separator, expected `-`"
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not 1 <= month <= 12:
        return "month value is outside expected range of 1-12"
    if not 1 <= day <= _days_in(year, month):
        return "day value is outside expected range"
    return None if len(text) == 10 else "unexpected extra characters at the end of the input"


def _no_moment(value: str) -> ValidationError:
    fault = _date_fault(value.encode(errors="surrogatepass"))
    return refuse("timezone_aware", value) if fault is None else _not_a_date(value, fault)


def _not_a_date(value: str, fault: str) -> ValidationError:
    return refuse("datetime_from_date_parsing", value, error=fault)
