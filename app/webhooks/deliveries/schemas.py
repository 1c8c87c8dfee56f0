"""Requests and answers about deliveries."""

from __future__ import annotations

from uuid import UUID

from app.audit.outbox import ALL_TYPES
from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, Literal, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema
from app.webhooks.deliveries.models import DeliveryStatus


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

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
        "next_attempt_at": "When the next attempt is due (UTC); null if none is.",
        "response_code": "The HTTP status of the last answer; null without one.",
        "duration_ms": "How many milliseconds the last attempt took; null before the first.",
    }


class EventId(Str):
    """The id of an event, as the feed shows it."""

    def to_json(self, value: UUID) -> str:
        return f"evt_{value.hex}"


class WebhookDeliverySchema(Documented, AnswerSchema):
    """An event for an endpoint, and its last attempt."""

    id = Uuid()
    created_at = AwareDateTime()
    endpoint_id = Uuid(description="The webhook endpoint.")
    event_id = EventId(description="Sent as `webhook-id`; the same at each attempt.")
    type = Str(description="The event's type.")
    status = Choice(
        DeliveryStatus,
        description="`pending`: waits for its first or next attempt; `sending`;"
        " `succeeded`; `failed`: no further attempts.",
    )
    attempts = Int(description="How many attempts there were.")
    attempted_at = AwareDateTime(nullable=True, description="When the last attempt began.")
    next_attempt_at = AwareDateTime(nullable=True)
    response_code = Int(nullable=True)
    response_body = Str(nullable=True, description="The first 2,048 characters of the last answer.")
    error = Str(nullable=True, description="Why the last attempt got no answer.")
    duration_ms = Int(nullable=True)


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


class RecoveredSchema(Documented, AnswerSchema):
    """What will be delivered again."""

    resent = Int(description="Failed deliveries.")
    missed = Int(description="Events that had no delivery.")
    is_complete = Bool(description="False where there are more: send the same request again.")
