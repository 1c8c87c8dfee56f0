"""Times: datetimes with a time zone, in UTC, written as RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime

from app.core.errors import Invalid, Location, value_error


def utcnow() -> datetime:
    """The current time, with the time zone UTC."""
    return datetime.now(UTC)


def check_future(moment: datetime | None, loc: Location) -> None:
    """Raise Invalid at ``loc`` if ``moment`` is not in the future. None is allowed."""
    if moment is not None and moment <= utcnow():
        raise Invalid(value_error(loc, "must be in the future", rfc3339(moment)))


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with ``Z``; microseconds are written only if they are not zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
