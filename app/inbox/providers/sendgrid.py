"""SendGrid: e-mail events in batches, in no order, often twice.

The body is always a list; each element is a row of its own, keyed by ``sg_event_id``. The
sender's own values (custom arguments) are the members that SendGrid does not define.
"""

from __future__ import annotations

from app.emails.events import EmailEvent, EmailKind, suppressions_of
from app.inbox.providers.payloads import Document, Unwanted, address, parse_object, scalars
from app.inbox.providers.provider import Provider

_KINDS = {
    "processed": EmailKind.SENT,
    "deferred": EmailKind.DEFERRED,
    "delivered": EmailKind.DELIVERED,
    "bounce": EmailKind.BOUNCED,
    "dropped": EmailKind.REJECTED,
    "open": EmailKind.OPENED,
    "click": EmailKind.CLICKED,
    "spamreport": EmailKind.COMPLAINED,
    "unsubscribe": EmailKind.UNSUBSCRIBED,
    "group_unsubscribe": EmailKind.UNSUBSCRIBED,
    "group_resubscribe": EmailKind.RESUBSCRIBED,
}

_DEFINED = frozenset((
    "asm_group_id", "attempt", "bounce_classification", "category", "cert_err", "domain",
    "email", "event", "from", "ip", "marketing_campaign_id", "marketing_campaign_name",
    "marketing_campaign_split_id", "marketing_campaign_version", "newsletter", "pool",
    "post_type", "reason", "response", "send_at", "sg_content_type", "sg_event_id",
    "sg_machine_open", "sg_message_id", "smtp-id", "status", "timestamp", "tls", "type", "url",
    "url_offset", "useragent",
))  # fmt: skip


def adapt(body: bytes) -> list[EmailEvent]:
    """The e-mail events in one element; the names are those of SendGrid's event reference."""
    event = parse_object(body)
    kind = _KINDS.get(str(event.value("event")))
    if kind is None:
        raise Unwanted("not about a message that was sent")
    if kind is EmailKind.BOUNCED and event.value("type") == "blocked":
        kind = EmailKind.SOFT_BOUNCED
    return [
        EmailEvent(
            kind=kind,
            message_id=_message_id(event),
            recipient=address(event.value("email")),
            occurred_at=event.epoch("timestamp"),
            reason=event.text("reason") or "",
            response=event.text("response") or "",
            url=event.text("url") or "",
            tags=event.texts("category"),
            metadata=scalars(item for item in event.members().items() if item[0] not in _DEFINED),
            suppressions=suppressions_of(kind, _group(event)),
        )
    ]


def _message_id(event: Document) -> str:
    """The ``X-Message-Id`` of the answer to sending; an asynchronous bounce has only the SMTP id."""
    sg_message_id = event.text("sg_message_id") or ""
    for separator in (".recvd", ".filter"):
        head, found, _ = sg_message_id.partition(separator)
        if found:
            return head
    return sg_message_id or event.text("smtp-id") or ""


def _group(event: Document) -> str:
    """The unsubscribe group of the event; ``""`` for all mail."""
    group = event.value("asm_group_id")
    return f"group:{group}" if isinstance(group, int) and not isinstance(group, bool) else ""


PROVIDER = Provider(
    name="sendgrid",
    adapt=adapt,
    event_type=lambda event: event.value("event"),
    own_id=lambda event: event.value("sg_event_id"),
    sends_batches=True,
)
