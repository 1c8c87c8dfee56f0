"""Requests and answers of the e-mail lists."""

from __future__ import annotations

from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import (
    AwareDateTime,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Literal,
    Str,
    Uuid,
)
from app.core.validation.schemas import Schema
from app.emails.events import STATES, Cause, EmailKind

MAX_ADDRESS = 320

EXAMPLES = {
    "source": "resend",
    "message_id": "<0102@mail.example.com>",
    "recipient": "ada@example.com",
    "reason": "mailbox full",
    "response": "452 4.2.2 mailbox full",
    "url": "https://example.com/invoice",
    "tags": ["invoice"],
    "metadata": {"invoice": "42"},
    "address": "ada@example.com",
    "scope": "",
}


class EmailEventSchema(Schema):
    examples = EXAMPLES

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    webhook_event_id = Uuid(required=True)
    source = Str(required=True)
    message_id = Str(required=True)
    recipient = Str(required=True)
    kind = Choice(EmailKind, required=True)
    occurred_at = AwareDateTime(required=True)
    reason = Str(required=True)
    response = Str(required=True)
    url = Str(required=True)
    tags = ListOf(Str(), required=True)
    metadata = JsonObject(required=True)


class EmailEventQuerySchema(PageQuerySchema):
    examples = EXAMPLES

    recipient = Str(max_length=MAX_ADDRESS)
    message_id = Str()
    kind = Choice(EmailKind)
    source = Str()
    occurred_after = AwareDateTime(metadata={"description": "Occurred at this time or later."})
    occurred_before = AwareDateTime(metadata={"description": "Occurred before this time."})


class EmailMessageSchema(Schema):
    examples = EXAMPLES

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    updated_at = AwareDateTime(required=True)
    source = Str(required=True)
    message_id = Str(required=True)
    recipient = Str(attribute="address", required=True)
    state = Literal("unknown", *(state.value for state in STATES), required=True)
    state_at = AwareDateTime(required=True, nullable=True)
    opens = Int(required=True)
    clicks = Int(required=True)
    first_opened_at = AwareDateTime(required=True, nullable=True)
    first_clicked_at = AwareDateTime(required=True, nullable=True)


class EmailMessageQuerySchema(PageQuerySchema):
    examples = EXAMPLES

    recipient = Str(max_length=MAX_ADDRESS)
    message_id = Str()
    state = Literal("unknown", *(state.value for state in STATES))
    source = Str()


class SuppressionSchema(Schema):
    examples = EXAMPLES

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    updated_at = AwareDateTime(required=True)
    address = Str(required=True)
    cause = Choice(Cause, required=True)
    scope = Str(required=True, metadata={"description": '`""` for all mail.'})
    source = Str(required=True)
    suppressed_at = AwareDateTime(required=True)


class SuppressionQuerySchema(PageQuerySchema):
    examples = EXAMPLES

    address = Str(max_length=MAX_ADDRESS)
    cause = Choice(Cause)
