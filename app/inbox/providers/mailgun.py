"""Mailgun: e-mail events in ``event-data``.

The signature covers only a token and proves nothing about the event, so the inbox accepts each
token once.
"""

from __future__ import annotations

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.inbox.providers.payloads import Document, Unwanted, address, parse_object
from app.inbox.providers.provider import Provider

_DATA = "event-data"
_KINDS = {
    "accepted": EmailKind.SENT,
    "delivered": EmailKind.DELIVERED,
    "opened": EmailKind.OPENED,
    "clicked": EmailKind.CLICKED,
    "unsubscribed": EmailKind.UNSUBSCRIBED,
    "complained": EmailKind.COMPLAINED,
    "rejected": EmailKind.REJECTED,
}


def adapt(body: bytes) -> list[EmailEvent]:
    """The e-mail events in one event; the names are those of Mailgun's event reference."""
    data = parse_object(body).at(_DATA)
    kind = _kind(data)
    return [
        EmailEvent(
            kind=kind,
            message_id=_message_id(data),
            recipient=address(data.value("recipient")),
            occurred_at=data.epoch("timestamp"),
            reason=data.first_text(
                ("delivery-status", "description"), ("reject", "reason"), ("reason",)
            ),
            response=data.text("delivery-status", "message") or "",
            url=data.text("url") or "",
            tags=data.texts("tags"),
            metadata=data.pairs("user-variables"),
            suppressions=suppressions_of(kind),
        )
    ]


def _kind(data: Document) -> EmailKind:
    match data.text("event"):
        case "failed" if (data.text("reason") or "").startswith("suppress-"):
            return EmailKind.REJECTED  # on a suppression list of Mailgun's own: never attempted
        case "failed" if data.text("severity") == "permanent":
            return EmailKind.BOUNCED
        case "failed":
            return EmailKind.DEFERRED  # Mailgun continues to try
        case str() as name if name in _KINDS:
            return _KINDS[name]
        case _:
            raise Unwanted("not about a message that was sent")


def _message_id(data: Document) -> str:
    """The message id in angle brackets, as the answer to sending has it."""
    bare = data.text("message", "headers", "message-id")
    return f"<{bare.strip('<>')}>" if bare else ""


PROVIDER = Provider(
    name="mailgun",
    event_type=lambda event: event.value(_DATA, "event"),
    own_id=lambda event: event.value(_DATA, "id"),
    prefers_own_id=True,
    adapt=adapt,
)
