"""What a provider is to us: two pure functions over its bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.identity_sync.events import Delivery, Event
from app.webhooks.providers.payloads import MAX_ID, Posted, Unreadable, digest, key

Split = Callable[[Posted, str | None], list[Delivery]]
Adapt = Callable[[bytes], Sequence[Event]]


@dataclass(frozen=True, slots=True)
class Provider:
    """One sender's form of events.

    ``split(posted, message_id)`` makes inbox rows of a verified request and never raises;
    ``message_id`` is the delivery id that the signature's envelope carries, if any.
    ``adapt(body)`` says what one row means, or raises Unwanted or Unreadable.
    ``recognises(document)`` tells the form by its looks, where the signature does not tell.
    ``batches``: one request holds a list of events.
    """

    name: str
    split: Split
    adapt: Adapt
    recognises: Callable[[Any], bool]
    batches: bool = False


def single(
    event_type: Callable[[dict[str, Any]], Any],
    own_id: Callable[[dict[str, Any]], Any] | None = None,
    *,
    prefer_message_id: bool = True,
) -> Split:
    """A split for providers that send one event per request.

    The key is the delivery id, else the event's own (the other way round where told so), else
    a digest of the body.
    """

    def split(posted: Posted, message_id: str | None) -> list[Delivery]:
        body = posted.body
        try:
            event = posted.event
        except Unreadable as fault:
            return [unreadable(body, message_id, str(fault))]
        own = own_id(event) if own_id else None
        ids = [message_id, own] if prefer_message_id else [own, message_id]
        external_id = next((key(id_) for id_ in ids if isinstance(id_, str) and id_), None)
        return [Delivery(external_id or digest(body), type_name(event_type(event)), body)]

    return split


def unreadable(body: bytes, message_id: str | None, error: str) -> Delivery:
    """A row for what cannot be read, to be kept as failed."""
    return Delivery(key(message_id) if message_id else digest(body), "", body, error)


def type_name(value: Any) -> str:
    """The provider's name of the event type, bounded; ``""`` where it gives none."""
    return value[:MAX_ID] if isinstance(value, str) else ""
