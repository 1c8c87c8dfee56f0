"""Amazon SES, whose events come as the ``Message`` of an SNS notification.

A bounce, a complaint, a delay and a delivery list their recipients: one event for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.emails.events import Cause, EmailEvent, EmailKind, Suppression, suppressions_of
from app.webhooks.providers.payloads import (
    Unreadable,
    Unwanted,
    address,
    member,
    moment,
    objects,
    optional_moment,
    pairs,
    parse_object,
    text,
    texts,
)
from app.webhooks.providers.provider import (
    Each,
    Event,
    Provider,
    SubscriptionConfirmation,
    single,
)

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
_RECIPIENTS = {
    "Bounce": "bouncedRecipients",
    "Complaint": "complainedRecipients",
    "DeliveryDelay": "delayedRecipients",
}


def adapt(body: bytes) -> Sequence[Event]:
    """The events in one notification; the names are those of the SES developer guide."""
    envelope = parse_object(body)
    match envelope.get("Type"):
        case "SubscriptionConfirmation":
            return [SubscriptionConfirmation(text(envelope, "SubscribeURL") or "")]
        case "Notification":
            return _events(envelope)
        case _:  # UnsubscribeConfirmation: visiting its address would subscribe again
            raise Unwanted("not a notification")


def _inner(envelope: dict[str, Any]) -> dict[str, Any]:
    """The event in ``Message``; Unwanted for the plain text that SNS posts to test a topic."""
    try:
        return parse_object((text(envelope, "Message") or "").encode())
    except Unreadable as fault:
        raise Unwanted("the message is not an event") from fault


def _event_type(event: dict[str, Any]) -> str:
    """``eventType``, or ``notificationType`` of the older notifications."""
    return text(event, "eventType") or text(event, "notificationType") or ""


def _type_of_envelope(envelope: dict[str, Any]) -> str:
    try:
        return _event_type(_inner(envelope)) or str(envelope.get("Type"))
    except Unwanted:
        return str(envelope.get("Type"))


def _events(envelope: dict[str, Any]) -> Sequence[EmailEvent]:
    event = _inner(envelope)
    name = _event_type(event)
    detail = member(event, _DETAILS.get(name, name.lower()))
    if name == "Subscription":
        return _opt_outs(event, detail)
    kind = _kind(name, detail)

    def make(to: tuple[str, str]) -> EmailEvent:
        recipient, response = to
        return EmailEvent(
            kind=kind,
            message_id=text(event, "mail", "messageId") or "",
            recipient=recipient,
            occurred_at=_occurred_at(envelope, event, name, detail),
            reason=_reason(detail),
            response=response or text(detail, "smtpResponse") or "",
            url=text(detail, "link") or "",
            metadata=_metadata(event),
            suppressions=suppressions_of(kind),
        )

    return Each(make, _recipients(event, name, detail))


def _kind(name: str, detail: Any) -> EmailKind:
    match name:
        case "Bounce":
            permanent = text(detail, "bounceType") == "Permanent"
            return EmailKind.BOUNCED if permanent else EmailKind.SOFT_BOUNCED
        case "Complaint" if text(detail, "complaintFeedbackType") == "not-spam":
            raise Unwanted("the recipient says it is not spam")
        case _ if name in _KINDS:
            return _KINDS[name]
        case _:
            raise Unwanted("not about a message that was sent")


def _recipients(event: dict[str, Any], name: str, detail: Any) -> list[tuple[str, str]]:
    """Addresses with the answers of their servers; else all recipients of the message."""
    if name in _RECIPIENTS:
        entries = objects(detail, _RECIPIENTS[name])
        found = [
            (address(member(entry, "emailAddress")), text(entry, "diagnosticCode") or "")
            for entry in entries
        ]
    else:
        addresses = texts(detail, "recipients") or texts(event, "mail", "destination")
        found = [(address(item), "") for item in addresses]
    if not found:
        raise Unreadable("no recipient is named")
    return found


def _occurred_at(
    envelope: dict[str, Any], event: dict[str, Any], name: str, detail: Any
) -> datetime:
    """The event's own time; for a sent message that of ``mail``; else the time of SNS."""
    if own := optional_moment(detail, "timestamp"):
        return own
    return moment(event, "mail", "timestamp") if name == "Send" else moment(envelope, "Timestamp")


def _reason(detail: Any) -> str:
    names = (
        "bounceSubType",
        "complaintFeedbackType",
        "delayType",
        "reason",
        "errorMessage",
    )
    return next((found for name in names if (found := text(detail, name))), "")


def _metadata(event: dict[str, Any]) -> dict[str, str]:
    """The sender's tags, without those of SES (``ses:``). Their values are lists of one."""
    tags = pairs(event, "mail", "tags")
    return {name: value for name, value in tags.items() if not name.startswith("ses:")}


def _opt_outs(event: dict[str, Any], detail: Any) -> Sequence[EmailEvent]:
    """The changes of a contact's preferences, for all mail or for some topics."""
    changes = _preference_changes(detail)
    if not changes:
        raise Unwanted("no preference changed")
    left = any(not change.lifted for change in changes)

    def make(recipient: str) -> EmailEvent:
        return EmailEvent(
            kind=EmailKind.UNSUBSCRIBED if left else EmailKind.RESUBSCRIBED,
            message_id=text(event, "mail", "messageId") or "",
            recipient=recipient,
            occurred_at=moment(detail, "timestamp"),
            metadata=_metadata(event),
            suppressions=changes,
        )

    return Each(make, [address(item) for item in texts(event, "mail", "destination")])


def _preference_changes(detail: Any) -> tuple[Suppression, ...]:
    before, after = (_preferences(detail, f"{age}TopicPreferences") for age in ("old", "new"))
    return tuple(
        Suppression(Cause.UNSUBSCRIBED, scope, lifted=not left)
        for scope, left in after.items()
        if before.get(scope, False) is not left
    )


def _preferences(detail: Any, name: str) -> dict[str, bool]:
    """Scope -> whether the contact opted out; ``""`` is all mail."""
    left = {"": member(detail, name, "unsubscribeAll") is True}
    for entry in objects(detail, name, "topicSubscriptionStatus"):
        left[f"topic:{text(entry, 'topicName')}"] = entry.get("subscriptionStatus") == "OptOut"
    return left


PROVIDER = Provider(
    name="ses",
    split=single(_type_of_envelope, lambda envelope: envelope.get("MessageId")),
    adapt=adapt,
)
