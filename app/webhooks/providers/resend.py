"""Resend: e-mail events, signed by Svix.

``created_at`` beside ``type`` is the event's time; the one in ``data`` is the message's.
A message to several people gives an event for each of them, and none says whom it is about: it
is recorded for every ``to`` address and then puts nobody on the suppression list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.webhooks.providers.payloads import (
    Unreadable,
    Unwanted,
    address,
    flag,
    member,
    moment,
    pairs,
    parse_object,
    text,
    texts,
)
from app.webhooks.providers.provider import Each, Provider, single

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


def adapt(body: bytes) -> Sequence[EmailEvent]:
    """The e-mail events in one event; https://resend.com/docs/webhooks/event-types lists them."""
    event = parse_object(body)
    match event.get("type"):
        case "email.bounced":
            permanent = text(event, "data", "bounce", "type") == "Permanent"
            return _events(event, EmailKind.BOUNCED if permanent else EmailKind.SOFT_BOUNCED)
        case "contact.created" | "contact.updated" | "contact.deleted":
            return _opt_out(event)
        case str() as name if name in _KINDS:
            return _events(event, _KINDS[name])
        case _:
            raise Unwanted("not about a message that was sent")


def _events(event: dict[str, Any], kind: EmailKind) -> Sequence[EmailEvent]:
    data = member(event, "data")
    recipients = [address(recipient) for recipient in texts(data, "to")]
    if not recipients:
        raise Unreadable("data.to is missing")
    everybody = (*recipients, *texts(data, "cc"), *texts(data, "bcc"))

    def make(recipient: str) -> EmailEvent:
        return EmailEvent(
            kind=kind,
            message_id=text(data, "email_id") or "",
            recipient=recipient,
            occurred_at=moment(event, "created_at"),
            reason=_reason(data),
            response=" ".join(_diagnostics(data)),
            url=text(data, "click", "link") or "",
            metadata=pairs(data, "tags"),
            suppressions=suppressions_of(kind) if len(everybody) == 1 else (),
        )

    return Each(make, recipients)


def _reason(data: Any) -> str:
    paths = (
        ("bounce", "message"),
        ("suppressed", "message"),
        ("suppressed", "reason"),
        ("failed", "reason"),
    )
    return next((found for path in paths if (found := text(data, *path))), "")


def _diagnostics(data: Any) -> tuple[str, ...]:
    """The diagnostic codes of the receiving servers: a list or one text; empty if none is given."""
    return texts(data, "bounce", "diagnosticCode") or texts(data, "suppressed", "diagnosticCode")


def _opt_out(event: dict[str, Any]) -> list[EmailEvent]:
    """A contact says whether it wants broadcasts; one that was not asked says nothing."""
    unsubscribed = flag(event, "data", "unsubscribed")
    if unsubscribed is None or event["type"] == "contact.deleted":
        raise Unwanted("does not say whether the contact wants mail")
    kind = EmailKind.UNSUBSCRIBED if unsubscribed else EmailKind.RESUBSCRIBED
    return [
        EmailEvent(
            kind=kind,
            message_id="",
            recipient=address(member(event, "data", "email")),
            occurred_at=moment(event, "created_at"),
            suppressions=suppressions_of(kind),
        )
    ]


PROVIDER = Provider(
    name="resend",
    split=single(lambda event: event.get("type")),
    adapt=adapt,
)
