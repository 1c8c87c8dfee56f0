"""Time: aware, UTC, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime


def utcnow() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with ``Z``; microseconds only if there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
