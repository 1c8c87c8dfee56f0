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


class Documented(Schema):
    """What the fields of all schemas here are, and an example of each."""

    examples = {
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
    descriptions = {
        "webhook_event_id": "The webhook event that it came with.",
        "source": "The e-mail provider, such as `resend`.",
        "message_id": "The provider's id of the message; empty if the event is about the address alone.",
        "recipient": "The address that the message was sent to.",
        "kind": "What happened.",
        "occurred_at": "When it happened, as the provider says (UTC).",
        "reason": "The provider's reason; empty without one.",
        "response": "The answer of the receiving server; empty without one.",
        "url": "The link that was clicked; else empty.",
        "tags": "The sender's tags of the message.",
        "metadata": "The sender's own values of the message.",
        "state": "The highest state that any event gave the message; `unknown` without one.",
        "state_at": "When the message reached the state (UTC); null if `unknown`.",
        "opens": "How often it was opened.",
        "clicks": "How often a link in it was clicked.",
        "first_opened_at": "When it was first opened (UTC); null if it was not.",
        "first_clicked_at": "When a link was first clicked (UTC); null if none was.",
        "address": "The e-mail address, in lower case.",
        "cause": "Why the address is on the list.",
        "suppressed_at": "When the address came on the list (UTC).",
    }


class EmailEventSchema(Documented):
    """What happened to a message for one recipient."""

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


class EmailEventQuerySchema(Documented, PageQuerySchema):
    recipient = Str(
        max_length=MAX_ADDRESS, description="Only events about this address, in whatever case."
    )
    message_id = Str(description="Only events of the message with this id of the provider's.")
    kind = Choice(EmailKind, description="Only events of this kind.")
    source = Str(description="Only events of this provider.")
    occurred_after = AwareDateTime(description="Occurred at this time or later.")
    occurred_before = AwareDateTime(description="Occurred before this time.")


class EmailMessageSchema(Documented):
    """The state of a message for one recipient."""

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    updated_at = AwareDateTime(required=True)
    source = Str(required=True)
    message_id = Str(required=True, description="The provider's id of the message.")
    recipient = Str(attribute="address", required=True)
    state = Literal("unknown", *(state.value for state in STATES), required=True)
    state_at = AwareDateTime(required=True, nullable=True)
    opens = Int(required=True)
    clicks = Int(required=True)
    first_opened_at = AwareDateTime(required=True, nullable=True)
    first_clicked_at = AwareDateTime(required=True, nullable=True)


class EmailMessageQuerySchema(Documented, PageQuerySchema):
    recipient = Str(
        max_length=MAX_ADDRESS, description="Only messages to this address, in whatever case."
    )
    message_id = Str(description="Only the message with this id of the provider's.")
    state = Literal(
        "unknown", *(state.value for state in STATES), description="Only messages in this state."
    )
    source = Str(description="Only messages of this provider.")


class SuppressionSchema(Documented):
    """An address that no e-mail may be sent to, for one cause."""

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    updated_at = AwareDateTime(required=True)
    address = Str(required=True)
    cause = Choice(Cause, required=True)
    scope = Str(required=True, description='`""` for all mail.')
    source = Str(required=True)
    suppressed_at = AwareDateTime(required=True)


class SuppressionQuerySchema(Documented, PageQuerySchema):
    address = Str(max_length=MAX_ADDRESS, description="Only this address, in whatever case.")
    cause = Choice(Cause, description="Only suppressions for this cause.")
