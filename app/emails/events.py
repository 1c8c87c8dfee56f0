"""E-mail events in one form for all providers.

Each event is a fact about one recipient of one message. Their order does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class EmailKind(StrEnum):
    """What happened to one message for one recipient."""

    SCHEDULED = "scheduled"
    SENT = "sent"
    DEFERRED = "deferred"
    SOFT_BOUNCED = "soft_bounced"
    REJECTED = "rejected"
    """Not sent: the address is suppressed, a policy forbids it, or the template has an error."""
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    """The receiving server refused it permanently."""
    COMPLAINED = "complained"
    OPENED = "opened"  # from here on the kinds are not states of a message
    CLICKED = "clicked"
    UNSUBSCRIBED = "unsubscribed"
    RESUBSCRIBED = "resubscribed"


STATES = tuple(EmailKind)[: list(EmailKind).index(EmailKind.OPENED)]
"""The states of a message, lowest first: the kinds before OPENED.

A message has the highest state that any event gave it.
"""


class Cause(StrEnum):
    """Why an address is on the suppression list."""

    BOUNCED = "bounced"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"


@dataclass(frozen=True, slots=True)
class Suppression:
    """A change of the suppression list: an address is added for a cause, or removed.

    ``scope`` is ``""`` for all mail, or the group, topic or stream that the person has left.
    """

    cause: Cause
    scope: str = ""
    lifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailEvent:
    """One fact about one recipient of one message."""

    kind: EmailKind
    message_id: str
    """The provider's id of the message; ``""`` where the event is about the address alone."""
    recipient: str
    occurred_at: datetime
    reason: str = ""
    response: str = ""
    """What the receiving mail server answered."""
    url: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The sender's own values, by which it identifies the communication."""
    suppressions: tuple[Suppression, ...] = ()


_SUPPRESSIONS = {
    EmailKind.BOUNCED: (Cause.BOUNCED, False),
    EmailKind.COMPLAINED: (Cause.COMPLAINED, False),
    EmailKind.UNSUBSCRIBED: (Cause.UNSUBSCRIBED, False),
    EmailKind.RESUBSCRIBED: (Cause.UNSUBSCRIBED, True),
}


def suppressions_of(kind: EmailKind, scope: str = "") -> tuple[Suppression, ...]:
    """The changes of the suppression list by an event of this kind; ``scope`` is for opt-outs."""
    if kind not in _SUPPRESSIONS:
        return ()
    cause, lifted = _SUPPRESSIONS[kind]
    return (Suppression(cause, scope if cause is Cause.UNSUBSCRIBED else "", lifted),)
