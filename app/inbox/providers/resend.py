"""Resend: e-mail events, signed by Svix.

The outer ``created_at`` is the event's time; that in ``data`` is the message's. A message to
several people causes an event for each of them, which does not name the person. It is recorded for
every ``to`` address, and suppresses none.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.inbox.providers.payloads import Document, Unreadable, Unwanted, address, parse_object
from app.inbox.providers.provider import Each, Provider

_KINDS = {
    "email.scheduled": EmailKind.SCHEDULED,
    "email.sent": EmailKind.SENT,
    "email.delivery_delayed": EmailKind.DEFERRED,
    "email.delivered": EmailKind.DELIVERED,
    "email.complained": EmailKind.COMPLAINED,
    "email.opened": EmailKind.OPENED,
    "email.clicked": EmailKind.CLICKED,
    "email.failed": EmailKind.REJECTED,
    "email.suppressed": EmailKind.REJECTED,
}
_REASONS = (
    ("bounce", "message"),
    ("suppressed", "message"),
    ("suppressed", "reason"),
    ("failed", "reason"),
)


def adapt(body: bytes) -> Sequence[EmailEvent]:
    """The e-mail events in one event; https://resend.com/docs/webhooks/event-types lists them."""
    event = parse_object(body)
    match event.value("type"):
        case "email.bounced":
            permanent = event.text("data", "bounce", "type") == "Permanent"
            return _events(event, EmailKind.BOUNCED if permanent else EmailKind.SOFT_BOUNCED)
        case "contact.created" | "contact.updated" | "contact.deleted":
            return _opt_out(event)
        case str() as name if name in _KINDS:
            return _events(event, _KINDS[name])
        case _:
            raise Unwanted("not about a message that was sent")


def _events(event: Document, kind: EmailKind) -> Sequence[EmailEvent]:
    data = event.at("data")
    recipients = [address(recipient) for recipient in data.texts("to")]
    if not recipients:
        raise Unreadable("data.to is missing")
    everybody = (*recipients, *data.texts("cc"), *data.texts("bcc"))

    def make(recipient: str) -> EmailEvent:
        return EmailEvent(
            kind=kind,
            message_id=data.text("email_id") or "",
            recipient=recipient,
            occurred_at=event.moment("created_at"),
            reason=data.first_text(*_REASONS),
            response=" ".join(
                data.texts("bounce", "diagnosticCode") or data.texts("suppressed", "diagnosticCode")
            ),
            url=data.text("click", "link") or "",
            metadata=data.pairs("tags"),
            suppressions=suppressions_of(kind) if len(everybody) == 1 else (),
        )

    return Each(make, recipients)


def _opt_out(event: Document) -> list[EmailEvent]:
    """A contact says whether it wants broadcasts; a contact that was not asked says nothing."""
    unsubscribed = event.flag("data", "unsubscribed")
    if unsubscribed is None or event.value("type") == "contact.deleted":
        raise Unwanted("does not say whether the contact wants mail")
    kind = EmailKind.UNSUBSCRIBED if unsubscribed else EmailKind.RESUBSCRIBED
    return [
        EmailEvent(
            kind=kind,
            message_id="",
            recipient=address(event.value("data", "email")),
            occurred_at=event.moment("created_at"),
            suppressions=suppressions_of(kind),
        )
    ]


PROVIDER = Provider(name="resend", adapt=adapt)
