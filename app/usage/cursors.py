"""The cursor of the list of usage: the feature and the period of a page's last row."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime

from app.core.errors import Invalid, value_error


def make(feature: str, period_start: datetime) -> str:
    """An opaque, URL-safe text."""
    return urlsafe_b64encode(json.dumps([feature, period_start.isoformat()]).encode()).decode()


def read(cursor: str) -> tuple[str, datetime]:
    """The place that :func:`make` wrote; raises Invalid for any other text."""
    try:
        feature, moment = json.loads(urlsafe_b64decode(cursor.encode("ascii")))
        found = str(feature), datetime.fromisoformat(moment)
        if make(*found) != cursor:
            raise ValueError("not written here")
    except (ValueError, TypeError):
        reason = "this is not a cursor that a list answered"
        raise Invalid(value_error(["query", "cursor"], reason, cursor)) from None
    return found
