"""Requests and answers of the operators' view of the inbox."""

from __future__ import annotations

from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Bool,
    Choice,
    Int,
    JsonObject,
    Str,
    Uuid,
)
from app.core.validation.schemas import Schema
from app.inbox import service
from app.inbox.models import Status

EXAMPLES = {
    "source": "workos",
    "external_id": "event_01JZ4P",
    "event_type": "user.updated",
    "type": "user.updated",
    "detail": "applied",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "request_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
    "headers": {"content-type": "application/json"},
    "payload": {"event": "user.updated"},
}
DESCRIPTIONS = {
    "created_at": "When it was received (UTC).",
    "source": "The provider, such as `workos` or `sendgrid`.",
    "external_id": "The provider's id of the event.",
    "event_type": "The provider's name of the event type.",
    "status": "What became of the event; only `pending` and `waiting_tenant` change by themselves.",
    "detail": "Why it was ignored or waits, or the error of its last attempt; else empty.",
    "attempts": "How often a worker has tried to apply it.",
    "replays": "How often it was replayed.",
    "next_attempt_at": "When the next attempt is due (UTC); null if none is.",
    "processed_at": "When its processing ended (UTC); null until then.",
    "digest": "SHA-256 of the event's JSON.",
    "headers": "Secrets are redacted.",
    "payload": "The event's JSON; null once the payload was removed.",
}


class Payload(AnyJson):
    """A stored body without its secrets."""

    def to_json(self, value: bytes | None) -> object:
        """Its JSON without secrets; null where it was removed."""
        return service.shown(value)


class WebhookEventSchema(Schema):
    """An event that a provider posted."""

    examples = EXAMPLES
    descriptions = DESCRIPTIONS

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    updated_at = AwareDateTime(required=True)
    source = Str(required=True)
    external_id = Str(required=True)
    event_type = Str(required=True)
    status = Choice(Status, required=True)
    detail = Str(required=True)
    attempts = Int(required=True)
    replays = Int(required=True)
    next_attempt_at = AwareDateTime(required=True, nullable=True)
    processed_at = AwareDateTime(required=True, nullable=True)
    digest = Str(required=True)
    request_id = Str(required=True)


class WebhookEventDetailSchema(WebhookEventSchema):
    """An event that a provider posted, with its headers and payload."""

    headers = JsonObject(required=True)
    payload = Payload(attribute="body", required=True, nullable=True)


class ReplayQuerySchema(Schema):
    """Which failed events to replay."""

    examples = EXAMPLES

    source = Str(description="Only events of this provider.")


class ReplaySchema(Schema):
    """How many failed events are applied again."""

    examples = {"replayed": 17, "has_more": False}
    descriptions = {
        "replayed": "The number of these events.",
        "has_more": "Whether a further request may replay others.",
    }

    replayed = Int(required=True)
    has_more = Bool(required=True)


class WebhookEventQuerySchema(PageQuerySchema):
    examples = EXAMPLES
    descriptions = DESCRIPTIONS

    source = Str(description="Only events of this provider, such as `workos` or `sendgrid`.")
    type = Str(attribute="event_type", description="Only events with this name of the provider's.")
    status = Choice(Status, description="Only events in this status.")
    bp_subscription_id = Str(
        description="Only a billing provider's events about the subscription with this id of its own."
    )
