"""Amazon SES, whose events come as the ``Message`` of an SNS notification.

A bounce, a complaint, a delay and a delivery list their recipients: one event for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.emails.events import Cause, EmailEvent, EmailKind, Suppression, suppressions_of
from app.inbox.providers.payloads import Document, Unreadable, Unwanted, address, parse_object
from app.inbox.providers.provider import Each, Event, Provider, SubscriptionConfirmation

_KINDS = {
    "Send": EmailKind.SENT,
    "Delivery": EmailKind.DELIVERED,
    "DeliveryDelay": EmailKind.DEFERRED,
    "Complaint": EmailKind.COMPLAINED,
    "Open": EmailKind.OPENED,
    "Click": EmailKind.CLICKED,
    "Reject": EmailKind.REJECTED,
    "Rendering Failure": EmailKind.REJECTED,
}
_DETAILS = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}
_REASONS = (
    ("bounceSubType",),
    ("complaintFeedbackType",),
    ("delayType",),
    ("reason",),
    ("errorMessage",),
)
_RECIPIENTS = {
    "Bounce": "bouncedRecipients",
    "Complaint": "complainedRecipients",
    "DeliveryDelay": "delayedRecipients",
}


def adapt(body: bytes) -> Sequence[Event]:
    """The events in one notification; the names are those of the SES developer guide."""
    envelope = parse_object(body)
    match envelope.value("Type"):
        case "SubscriptionConfirmation":
            return [SubscriptionConfirmation(envelope.text("SubscribeURL") or "")]
        case "Notification":
            return _events(envelope)
        case _:  # UnsubscribeConfirmation: visiting its address would subscribe again
            raise Unwanted("not a notification")


def _inner(envelope: Document) -> Document:
    """The event in ``Message``; Unwanted for the plain text that SNS posts to test a topic."""
    try:
        return parse_object((envelope.text("Message") or "").encode())
    except Unreadable as fault:
        raise Unwanted("the message is not an event") from fault


def _event_type(event: Document) -> str:
    """``eventType``, or ``notificationType`` of the older notifications."""
    return event.first_text(("eventType",), ("notificationType",))


def _type_of_envelope(envelope: Document) -> str:
    try:
        return _event_type(_inner(envelope)) or str(envelope.value("Type"))
    except Unwanted:
        return str(envelope.value("Type"))


def _events(envelope: Document) -> Sequence[EmailEvent]:
    event = _inner(envelope)
    name = _event_type(event)
    detail = event.at(_DETAILS.get(name, name.lower()))
    if name == "Subscription":
        return _opt_outs(event, detail)
    kind = _kind(name, detail)

    def make(to: tuple[str, str]) -> EmailEvent:
        recipient, response = to
        return EmailEvent(
            kind=kind,
            message_id=event.text("mail", "messageId") or "",
            recipient=recipient,
            occurred_at=_occurred_at(envelope, event, name, detail),
            reason=detail.first_text(*_REASONS),
            response=response or detail.text("smtpResponse") or "",
            url=detail.text("link") or "",
            metadata=_metadata(event),
            suppressions=suppressions_of(kind),
        )

    return Each(make, _recipients(event, name, detail))


def _kind(name: str, detail: Document) -> EmailKind:
    match name:
        case "Bounce":
            permanent = detail.text("bounceType") == "Permanent"
            return EmailKind.BOUNCED if permanent else EmailKind.SOFT_BOUNCED
        case "Complaint" if detail.text("complaintFeedbackType") == "not-spam":
            raise Unwanted("the recipient says it is not spam")
        case _ if name in _KINDS:
            return _KINDS[name]
        case _:
            raise Unwanted("not about a message that was sent")


def _recipients(event: Document, name: str, detail: Document) -> list[tuple[str, str]]:
    """Addresses with the answers of their servers; else all recipients of the message."""
    if name in _RECIPIENTS:
        entries = detail.objects(_RECIPIENTS[name])
        found = [
            (address(entry.value("emailAddress")), entry.text("diagnosticCode") or "")
            for entry in entries
        ]
    else:
        addresses = detail.texts("recipients") or event.texts("mail", "destination")
        found = [(address(item), "") for item in addresses]
    if not found:
        raise Unreadable("no recipient is named")
    return found


def _occurred_at(envelope: Document, event: Document, name: str, detail: Document) -> datetime:
    """The event's own time; for a sent message that of ``mail``; else the time of SNS."""
    if own := detail.optional_moment("timestamp"):
        return own
    return event.moment("mail", "timestamp") if name == "Send" else envelope.moment("Timestamp")


def _metadata(event: Document) -> dict[str, str]:
    """The sender's tags, without those of SES (``ses:``). Their values are lists of one."""
    tags = event.pairs("mail", "tags")
    return {name: value for name, value in tags.items() if not name.startswith("ses:")}


def _opt_outs(event: Document, detail: Document) -> Sequence[EmailEvent]:
    """The changes of a contact's preferences, for all mail or for some topics."""
    changes = _preference_changes(detail)
    if not changes:
        raise Unwanted("no preference changed")
    left = any(not change.lifted for change in changes)

    def make(recipient: str) -> EmailEvent:
        return EmailEvent(
            kind=EmailKind.UNSUBSCRIBED if left else EmailKind.RESUBSCRIBED,
            message_id=event.text("mail", "messageId") or "",
            recipient=recipient,
            occurred_at=detail.moment("timestamp"),
            metadata=_metadata(event),
            suppressions=changes,
        )

    return Each(make, [address(item) for item in event.texts("mail", "destination")])


def _preference_changes(detail: Document) -> tuple[Suppression, ...]:
    before, after = (_preferences(detail, f"{age}TopicPreferences") for age in ("old", "new"))
    return tuple(
        Suppression(Cause.UNSUBSCRIBED, scope, lifted=not left)
        for scope, left in after.items()
        if before.get(scope, False) is not left
    )


def _preferences(detail: Document, name: str) -> dict[str, bool]:
    """Scope -> whether the contact opted out; ``""`` is all mail."""
    left = {"": detail.value(name, "unsubscribeAll") is True}
    for entry in detail.objects(name, "topicSubscriptionStatus"):
        left[f"topic:{entry.text('topicName')}"] = entry.value("subscriptionStatus") == "OptOut"
    return left


PROVIDER = Provider(
    name="ses",
    event_type=_type_of_envelope,
    own_id=lambda envelope: envelope.value("MessageId"),
    adapt=adapt,
)
