"""Applying the events of billing providers: the state read because of an event, or its payload."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from app.billing import mirror
from app.billing.mirror import Outcome
from app.billing.providers import PROVIDERS
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Customer, Snapshot
from app.config import current_config
from app.core.db.statements import Statement
from app.inbox import service as inbox
from app.inbox.models import Status, WebhookEvent
from app.inbox.providers import Receiver
from app.inbox.providers.payloads import Document, Unreadable, Unwanted, parse_object
from app.inbox.providers.provider import Provider

WAITS_FOR = "waits for its tenant: "
STATUSES = {
    Outcome.APPLIED: Status.SUCCEEDED,
    Outcome.WAITING: Status.WAITING_TENANT,
    Outcome.TAKEN: Status.FAILED,
}
FIND_WAITING = Statement(
    "webhook_events.find_waiting_of_subscription",
    "SELECT id FROM webhook_events"
    " WHERE bp_subscription_id = :id AND source = :source AND status = 'waiting_tenant'",
)
OWN = "reconcile"
"""The type of events that a comparison stores, and the member that has the subscription it read."""


@dataclass(frozen=True)
class Reading:
    """The state read from the provider because of an event; ``at`` is our time just before."""

    at: datetime
    snapshot: Snapshot | None = None
    customer: Customer | None = None


def receiver_for(provider: BillingProvider) -> Receiver:
    """The receiver of a billing provider's events."""
    source = Provider(
        name=provider.name,
        adapt=lambda body: [told_by(provider, body)],
        event_type=provider.event_type,
        own_id=provider.event_id,
        subscription_id=lambda event: _subscription_of(provider, event),
    )
    return Receiver(
        name=provider.name,
        path=f"/webhooks/billing/{provider.name}",
        setting=f"webhook_secrets_{provider.name}",
        providers=(source,),
        preset=provider.name,
        apply=apply_event,
        api_key=f"{provider.name}_api_key",
    )


def told_by(provider: BillingProvider, body: bytes) -> BillingEvent:
    """What an event says: the provider's event, or an event of a comparison, see :data:`OWN`.

    Raises Unwanted and Unreadable.
    """
    return _told(provider, parse_object(body))


def _told(provider: BillingProvider, event: Document) -> BillingEvent:
    if not event.has(OWN):
        return provider.event(event)
    snapshot = provider.snapshot(event.at(OWN))
    return BillingEvent(
        subscription_id=snapshot.subscription_id,
        snapshot=snapshot,
        occurred_at=event.moment("read_at"),
        is_live=snapshot.is_live,
    )


def apply_event(
    event: WebhookEvent, parts: Sequence[BillingEvent], reading: Reading | None = None
) -> tuple[Status, str]:
    """Apply a claimed event; the event's status and detail.

    Raises Unreadable without a ``reading`` for a provider that does not sign its payloads.
    """
    (told,) = parts
    provider, is_read = PROVIDERS[event.source], reading is not None
    if (wrong := wrong_mode(told)) is not None:
        return Status.IGNORED, wrong
    if reading is None:
        if not provider.has_trusted_payloads:
            raise Unreadable(f"{provider.title} signs nothing: set {_key_of(provider)} to read it")
        reading = Reading(told.occurred_at, told.snapshot, told.customer)
    outcome, customer = Outcome.APPLIED, reading.customer
    if customer is not None:
        outcome = mirror.note_customer(provider.name, customer, None if is_read else reading.at)
    if told.subscription_id is not None and reading.snapshot is None:
        if not is_read:
            return Status.IGNORED, f"its subscription is read only with {_key_of(provider)}"
        outcome = Outcome.OVER
    if reading.snapshot is not None:
        outcome = mirror.apply(
            provider.name,
            reading.snapshot,
            at=reading.at,
            is_read=is_read,
            tenant=told.tenant,
            force=event.replays > 0 and not is_read,
        ).outcome
    if outcome is Outcome.OVER:  # earlier events of it wait for nothing any more
        inbox.release(FIND_WAITING.scalars(source=provider.name, id=told.subscription_id))
    detail = outcome.value or (f"read from {provider.title}" if is_read else "")
    if outcome is Outcome.WAITING and customer is not None and customer.tenant:
        detail = WAITS_FOR + customer.tenant  # not in the event; the job looks for it
    return STATUSES.get(outcome, Status.IGNORED), detail


def wrong_mode(told: BillingEvent | Snapshot) -> str | None:
    """Why it is ignored, if it is of the mode that ``BILLING_LIVEMODE`` excludes."""
    if told.is_live in (None, current_config().billing_livemode):
        return None
    return "live mode" if told.is_live else "test mode"


def _subscription_of(provider: BillingProvider, event: Document) -> str | None:
    """The id of the subscription that an event is about, or None."""
    with suppress(Unwanted, Unreadable):
        return _told(provider, event).subscription_id
    return None


def _key_of(provider: BillingProvider) -> str:
    return f"{provider.name.upper()}_API_KEY"
