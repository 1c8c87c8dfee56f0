"""The cursor of the list of usage: the feature and the period of a page's last row."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime

from app.core.errors import Invalid, value_error
from app.core.validation.scalars import is_storable


def make(feature: str, period_start: datetime) -> str:
    """An opaque, URL-safe text."""
    moment = period_start.astimezone(UTC).isoformat()
    return urlsafe_b64encode(f"{moment} {feature}".encode()).decode()


def read(cursor: str) -> tuple[str, datetime]:
    """The place that :func:`make` wrote; raises Invalid for any other text."""
    try:
        moment, feature = urlsafe_b64decode(cursor.encode("ascii")).decode().split(" ", 1)
        period_start = datetime.fromisoformat(moment)
        if make(feature, period_start) != cursor or not is_storable(feature):
            raise ValueError("not written here")
    except (ValueError, OverflowError):
        reason = "this is not a cursor that a list answered"
        raise Invalid(value_error(["query", "cursor"], reason, cursor)) from None
    return feature, period_start
