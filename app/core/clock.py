"""Time: aware, UTC, RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime


def utcnow() -> datetime:
    """The current moment, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """``2026-01-31T12:00:00.5Z`` style text: UTC, ``Z``, microseconds only where there are any."""
    there = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{there.isoformat()[:-6]}Z"  # without +00:00
