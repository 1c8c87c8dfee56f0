"""Postmark: e-mail events, one per request; ``RecordType`` is the type.

Only bounces and complaints have an id; the others are keyed by what they say.
"""

from __future__ import annotations

from app.emails.events import Cause, EmailEvent, EmailKind, Suppression, suppressions_of
from app.inbox.providers.payloads import Document, Unwanted, address, key, parse_object
from app.inbox.providers.provider import Provider

_BOUNCES = {
    "HardBounce": EmailKind.BOUNCED,
    "BadEmailAddress": EmailKind.BOUNCED,
    "SoftBounce": EmailKind.SOFT_BOUNCED,
    "VirusNotification": EmailKind.SOFT_BOUNCED,
    "SpamNotification": EmailKind.SOFT_BOUNCED,
    "Transient": EmailKind.DEFERRED,
    "DnsError": EmailKind.DEFERRED,
    "OpenRelayTest": EmailKind.DEFERRED,
    "SpamComplaint": EmailKind.COMPLAINED,
    "Unsubscribe": EmailKind.UNSUBSCRIBED,
    "Subscribe": EmailKind.RESUBSCRIBED,
    "ManuallyDeactivated": EmailKind.REJECTED,
    "Unconfirmed": EmailKind.REJECTED,
    "Blocked": EmailKind.REJECTED,
    "SMTPApiError": EmailKind.REJECTED,
    "DMARCPolicy": EmailKind.REJECTED,
    "TemplateRenderingFailed": EmailKind.REJECTED,
}
_TIMES = {
    "Delivery": "DeliveredAt",
    "Bounce": "BouncedAt",
    "SpamComplaint": "BouncedAt",
    "Open": "ReceivedAt",
    "Click": "ReceivedAt",
    "SubscriptionChange": "ChangedAt",
}
_SUPPRESSION_REASONS = {"HardBounce": Cause.BOUNCED, "SpamComplaint": Cause.COMPLAINED}


def adapt(body: bytes) -> list[EmailEvent]:
    """The e-mail events in one event; https://postmarkapp.com/developer/webhooks lists them."""
    event = parse_object(body)
    kind = _kind(event)
    return [
        EmailEvent(
            kind=kind,
            message_id=event.text("MessageID") or "",
            recipient=address(event.value("Recipient") or event.value("Email")),
            occurred_at=event.moment(_TIMES[str(event.value("RecordType"))]),
            reason=event.first_text(("Description",), ("SuppressionReason",)),
            response=event.text("Details") or "",
            url=event.text("OriginalLink") or "",
            tags=event.texts("Tag"),
            metadata=event.pairs("Metadata"),
            suppressions=_suppressions(event, kind),
        )
    ]


def _kind(event: Document) -> EmailKind:
    match event.value("RecordType"):
        case "Delivery":
            return EmailKind.DELIVERED
        case "Open":
            return EmailKind.OPENED
        case "Click":
            return EmailKind.CLICKED
        case "SpamComplaint":
            return EmailKind.COMPLAINED
        case "Bounce" if (bounce := str(event.value("Type"))) in _BOUNCES:
            return _BOUNCES[bounce]
        case "SubscriptionChange":
            suppressed = event.value("SuppressSending") is True
            return EmailKind.UNSUBSCRIBED if suppressed else EmailKind.RESUBSCRIBED
        case _:  # an automatic answer, a change of address, inbound mail
            raise Unwanted("not about a message that was sent")


def _suppressions(event: Document, kind: EmailKind) -> tuple[Suppression, ...]:
    """Postmark suppresses per message stream; reactivating an address also ends its bounce."""
    if event.value("RecordType") != "SubscriptionChange":
        return suppressions_of(kind)
    cause = _SUPPRESSION_REASONS.get(str(event.value("SuppressionReason")))
    if kind is EmailKind.UNSUBSCRIBED and cause:
        return (Suppression(cause),)
    stream = event.text("MessageStream")
    opt_out = suppressions_of(kind, f"stream:{stream}" if stream else "")
    if kind is EmailKind.UNSUBSCRIBED:
        return opt_out
    return (*opt_out, Suppression(Cause.BOUNCED, lifted=True))


def _own_id(event: Document) -> str | None:
    """The external id: RecordType and ID, else RecordType, message, recipient, time and link."""
    record_type = event.value("RecordType")
    if not isinstance(record_type, str) or record_type not in _TIMES:
        return None
    if isinstance(event.value("ID"), int):
        return f"{record_type}:{event.value('ID')}"
    names = ("MessageID", "Recipient", _TIMES[record_type], "OriginalLink")
    return key(record_type, *(event.text(name) or "" for name in names))


PROVIDER = Provider(
    name="postmark",
    event_type=lambda event: event.value("RecordType"),
    own_id=_own_id,
    prefers_own_id=True,
    adapt=adapt,
)
