"""Mailgun: e-mail events in ``event-data``.

The signature beside it covers a token only: a body is not proof of anything beyond that, so
the inbox takes each token once.
"""

from __future__ import annotations

from typing import Any

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.webhooks.providers.payloads import (
    Unwanted,
    address,
    epoch,
    member,
    pairs,
    parse_object,
    text,
    texts,
)
from app.webhooks.providers.provider import Provider, single

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
    data = member(parse_object(body), _DATA)
    kind = _kind(data)
    return [
        EmailEvent(
            kind=kind,
            message_id=_message_id(data),
            recipient=address(member(data, "recipient")),
            occurred_at=epoch(data, "timestamp"),
            reason=_reason(data),
            response=text(data, "delivery-status", "message") or "",
            url=text(data, "url") or "",
            tags=texts(data, "tags"),
            metadata=pairs(data, "user-variables"),
            suppressions=suppressions_of(kind),
        )
    ]


def _kind(data: Any) -> EmailKind:
    match text(data, "event"):
        case "failed" if (text(data, "reason") or "").startswith("suppress-"):
            return EmailKind.REJECTED  # on a suppression list of Mailgun's own: never attempted
        case "failed" if text(data, "severity") == "permanent":
            return EmailKind.BOUNCED
        case "failed":
            return EmailKind.DEFERRED  # Mailgun goes on trying
        case str() as name if name in _KINDS:
            return _KINDS[name]
        case _:
            raise Unwanted("not about a message that was sent")


def _message_id(data: Any) -> str:
    """The message id in angle brackets, as the answer to sending has it."""
    bare = text(data, "message", "headers", "message-id")
    return f"<{bare.strip('<>')}>" if bare else ""


def _reason(data: Any) -> str:
    paths = (("delivery-status", "description"), ("reject", "reason"), ("reason",))
    return next((found for path in paths if (found := text(data, *path))), "")


PROVIDER = Provider(
    name="mailgun",
    split=single(
        lambda event: member(event, _DATA, "event"),
        lambda event: member(event, _DATA, "id"),
        prefer_message_id=False,
    ),
    adapt=adapt,
)
