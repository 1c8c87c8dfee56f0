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
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.emails.events import STATES, Cause, EmailKind

MAX_ADDRESS = 320


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

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
        "source": "The e-mail provider, such as `resend`; `smtp` for mails of this service.",
        "message_id": "The provider's id of the message; empty if the event is about the address alone.",
        "recipient": "The address that the message was sent to.",
        "state": "The highest state that any event gave the message; `unknown` without one.",
        "state_at": "When the message reached the state (UTC); null if `unknown`.",
        "first_opened_at": "When it was first opened (UTC); null if it was not.",
        "first_clicked_at": "When a link was first clicked (UTC); null if none was.",
    }


class EmailEventSchema(Documented, AnswerSchema):
    """What happened to a message for one recipient."""

    id = Uuid()
    created_at = AwareDateTime()
    webhook_event_id = Uuid(
        description="The webhook event that it came with, or the invitation that was mailed."
    )
    source = Str()
    message_id = Str()
    recipient = Str()
    kind = Choice(EmailKind, description="What happened.")
    occurred_at = AwareDateTime(description="When it happened, as the provider says (UTC).")
    reason = Str(description="The provider's reason; empty without one.")
    response = Str(description="The answer of the receiving server; empty without one.")
    url = Str(description="The link that was clicked; else empty.")
    tags = ListOf(Str(), description="The sender's tags of the message.")
    metadata = JsonObject(description="The sender's own values of the message.")


class EmailEventQuerySchema(Documented, PageQuerySchema):
    recipient = Str(
        max_length=MAX_ADDRESS, description="Only events about this address, in whatever case."
    )
    message_id = Str(description="Only events of the message with this id of the provider's.")
    kind = Choice(EmailKind, description="Only events of this kind.")
    source = Str(description="Only events of this provider.")
    occurred_after = AwareDateTime(description="Occurred at this time or later.")
    occurred_before = AwareDateTime(description="Occurred before this time.")


class EmailMessageSchema(Documented, RowSchema):
    """The state of a message for one recipient."""

    source = Str()
    message_id = Str(description="The provider's id of the message.")
    recipient = Str(attribute="address")
    state = Literal("unknown", *(state.value for state in STATES))
    state_at = AwareDateTime(nullable=True)
    opens = Int(description="How often it was opened.")
    clicks = Int(description="How often a link in it was clicked.")
    first_opened_at = AwareDateTime(nullable=True)
    first_clicked_at = AwareDateTime(nullable=True)


class EmailMessageQuerySchema(Documented, PageQuerySchema):
    recipient = Str(
        max_length=MAX_ADDRESS, description="Only messages to this address, in whatever case."
    )
    message_id = Str(description="Only the message with this id of the provider's.")
    state = Literal(
        "unknown", *(state.value for state in STATES), description="Only messages in this state."
    )
    source = Str(description="Only messages of this provider.")


class SuppressionSchema(Documented, RowSchema):
    """An address that no e-mail may be sent to, for one cause."""

    address = Str(description="The e-mail address, in lower case.")
    cause = Choice(Cause, description="Why the address is on the list.")
    scope = Str(description='`""` for all mail.')
    source = Str()
    suppressed_at = AwareDateTime(description="When the address came on the list (UTC).")


class SuppressionQuerySchema(Documented, PageQuerySchema):
    address = Str(max_length=MAX_ADDRESS, description="Only this address, in whatever case.")
    cause = Choice(Cause, description="Only suppressions for this cause.")
