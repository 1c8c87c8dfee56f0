"""Times as people write and read them: ``14d``, ``2030-01-31``, "in 13 days"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

SPAN = re.compile(r"([+-]?)([0-9]{1,5})(s|m|h|d|w)")
POSITION = re.compile(r"now|beginning|[0-9]+|[\w=-]{24,}", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
UNITS_OF_SPAN = "units: s, m, h, d, w"
EXACT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|\+00:00)")
UNITS = {"year": 31_536_000, "day": 86_400, "hour": 3600, "minute": 60}


class Time(click.ParamType):
    """A date, a time, or a span such as ``14d``; the result is RFC 3339 in UTC.

    Without an offset a time is UTC. A span without a sign is before now if ``is_past``, else from
    now on.
    """

    name, forms = "time", f"14d ({UNITS_OF_SPAN})"

    def __init__(self, *, is_past: bool) -> None:
        self.is_past = is_past

    @property
    def help(self) -> str:
        """The forms of a time that the option accepts."""
        return f"Such as 2030-01-31 or 14d ({'14 days ago' if self.is_past else 'in 14 days'})."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return rfc3339(self._moment(value))
        except (ValueError, OverflowError):
            told = f"a time, such as 2030-01-31, 2030-01-31T12:00:00Z or {self.forms}"
            self.fail(f"{value!r} is not {told}.", param, ctx)

    def _moment(self, value: str) -> datetime:
        if found := SPAN.fullmatch(value):
            sign, number, unit = found.groups()
            span = timedelta(seconds=int(number) * SECONDS[unit])
            is_past = sign == "-" or (self.is_past and not sign)
            return utcnow().replace(microsecond=0) + (-span if is_past else span)
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Moment(Time):
    """A time of the past, or a position of the event feed."""

    name = "moment"
    forms = f"10m (10 minutes ago; {UNITS_OF_SPAN}), or a position of the event feed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if POSITION.fullmatch(value):  # 20300131 too, although it is a date
            return str(value)
        return super().convert(value, param, ctx)


def utcnow() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with ``Z``; microseconds only if there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def relative(text: str) -> str:
    """The distance of a time from now, such as ``in 13 days``; empty for any other text."""
    if not EXACT.fullmatch(text):
        return ""
    try:
        seconds = (datetime.fromisoformat(text) - utcnow()).total_seconds()
    except ValueError:
        return ""
    for unit, size in UNITS.items():
        if abs(seconds) >= 0.99 * size:  # 14 days, also some minutes later
            number = round(abs(seconds) / size)
            distance = f"{number} {unit}{'' if number == 1 else 's'}"
            return f"in {distance}" if seconds > 0 else f"{distance} ago"
    return "just now"
