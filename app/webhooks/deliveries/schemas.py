"""Requests and answers about deliveries."""

from __future__ import annotations

from uuid import UUID

from app.audit.outbox import ALL_TYPES
from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, Literal, Str, Uuid
from app.core.validation.schemas import Schema
from app.webhooks.deliveries.models import DeliveryStatus


class Documented(Schema):
    """What the fields of all schemas here are, and an example of each."""

    examples = {
        "event_id": "evt_01936f2e7a3b7c1d9e4f2b6a8c0d1e2f",
        "type": "subscription.updated",
        "status": "succeeded",
        "next_attempt_at": None,
        "response_code": 200,
        "response_body": "ok",
        "error": None,
        "duration_ms": 84,
        "is_complete": True,
    }
    descriptions = {
        "endpoint_id": "The webhook endpoint.",
        "type": "The event's type.",
        "attempts": "How many attempts there were.",
        "next_attempt_at": "When the next attempt is due (UTC); null if none is.",
        "response_code": "The HTTP status of the last answer; null without one.",
        "duration_ms": "How many milliseconds the last attempt took; null before the first.",
    }


class EventId(Str):
    """The id of an event, as the feed shows it."""

    def to_json(self, value: UUID) -> str:
        return f"evt_{value.hex}"


class WebhookDeliverySchema(Documented):
    """An event for an endpoint, and its last attempt."""

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    endpoint_id = Uuid(required=True)
    event_id = EventId(required=True, description="Sent as `webhook-id`; the same at each attempt.")
    type = Str(required=True)
    status = Choice(
        DeliveryStatus,
        required=True,
        description="`pending`: waits for its first or next attempt; `sending`;"
        " `succeeded`; `failed`: no further attempts.",
    )
    attempts = Int(required=True)
    attempted_at = AwareDateTime(
        required=True, nullable=True, description="When the last attempt began."
    )
    next_attempt_at = AwareDateTime(required=True, nullable=True)
    response_code = Int(required=True, nullable=True)
    response_body = Str(
        required=True, nullable=True, description="The first 2,048 characters of the last answer."
    )
    error = Str(required=True, nullable=True, description="Why the last attempt got no answer.")
    duration_ms = Int(required=True, nullable=True)


class WebhookDeliveryQuerySchema(PageQuerySchema):
    """Filters of the list of deliveries."""

    class Meta(PageQuerySchema.Meta):
        exclude = ("updated_after",)

    status = Choice(DeliveryStatus, description="Only deliveries in this status.")


class TestEventSchema(Documented):
    """Which example to send."""

    __test__ = False  # no class of tests

    type = Literal(*sorted(ALL_TYPES), required=True, description="The type of the example.")


class RecoverySchema(Schema):
    """From when on to recover."""

    since = AwareDateTime(
        required=True, description="At most 90 days ago; earlier ones count as that."
    )


class RecoveredSchema(Documented):
    """What will be delivered again."""

    resent = Int(required=True, description="Failed deliveries.")
    missed = Int(required=True, description="Events that had no delivery.")
    is_complete = Bool(
        required=True, description="False where there are more: send the same request again."
    )
