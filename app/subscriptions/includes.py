"""The keys that reads of subscriptions can include; they are columns that the Read shape lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.core.http.includes import Include
from app.core.validation.fields import AwareDateTime, Bool, Choice, Nested, Str
from app.core.validation.schemas import Schema
from app.subscriptions.statuses import StatusClass


class CancellationSchema(Schema):
    """The recorded cancellation."""

    examples = {"reason": "Too expensive."}
    descriptions = {
        "canceled_at": "When it was cancelled (UTC).",
        "at_period_end": "Whether it ends with the paid period, and not at once.",
        "reason": "Why it was cancelled; null without a reason.",
    }

    canceled_at = AwareDateTime(required=True)
    at_period_end = Bool(required=True, attribute="cancel_at_period_end")
    reason = Str(required=True, nullable=True, attribute="cancel_reason")


def _cancellations(rows: Sequence[Any]) -> list[Any]:
    return [None if row.canceled_at is None else row for row in rows]


CANCELLATION = Include(
    "cancellation",
    Nested(
        CancellationSchema, nullable=True, metadata={"description": "Null where none is recorded."}
    ),
    _cancellations,
)
STATUS_CLASS = Include(
    "status_class",
    Choice(StatusClass, metadata={"description": "The class of `bp_status`."}),
    lambda rows: [row.status_class for row in rows],
)
SOURCE_TIMESTAMP = Include(
    "source_timestamp",
    AwareDateTime(
        nullable=True,
        metadata={"description": "`X-Source-Timestamp` of the newest applied update, or null."},
    ),
    lambda rows: [row.source_timestamp for row in rows],
)
