"""The generic form of e-mail events, for providers without a module here.

The payload is the one that Standard Webhooks recommends::

    {"type": "email.bounced", "timestamp": "2026-01-05T09:45:05.123Z",
     "data": {"message_id": "m1", "recipient": "a@b.example", …}}

``type`` is ``email.`` and an :class:`EmailKind`; any other type is ignored.
``data`` holds ``recipient`` (one address, or a list), and as far as known ``message_id``,
``reason``, ``response`` (of the receiving server), ``url``, ``tags`` (a list of texts) and
``metadata`` (names with plain values). A delivery's id is found as in the generic form of identity
events: the ``webhook-id`` header, else ``id`` beside ``type``, else the body's digest.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.inbox.providers.payloads import Document, Unreadable, Unwanted, address, parse_object
from app.inbox.providers.provider import Each, Provider


def adapt(body: bytes) -> Sequence[EmailEvent]:
    event = parse_object(body)
    kind = _kind(event)
    recipients = [address(recipient) for recipient in event.texts("data", "recipient")]
    if not recipients:
        raise Unreadable("data.recipient is missing")

    def make(recipient: str) -> EmailEvent:
        return EmailEvent(
            kind=kind,
            message_id=event.text("data", "message_id") or "",
            recipient=recipient,
            occurred_at=event.moment("timestamp"),
            reason=event.text("data", "reason") or "",
            response=event.text("data", "response") or "",
            url=event.text("data", "url") or "",
            tags=event.texts("data", "tags"),
            metadata=event.pairs("data", "metadata"),
            suppressions=suppressions_of(kind),
        )

    return Each(make, recipients)


def _kind(event: Document) -> EmailKind:
    prefix, _, name = str(event.value("type")).partition(".")
    if prefix != "email" or name not in list(EmailKind):
        raise Unwanted("not about a message that was sent")
    return EmailKind(name)


PROVIDER = Provider(name="generic_email", own_id=lambda event: event.value("id"), adapt=adapt)
