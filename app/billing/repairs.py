"""What a comparison does with the subscriptions that it has read: repair, add, or end them.

Each function runs in the current transaction, in the platform's scope.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam, select

from app.audit import service as audit
from app.billing import mirror
from app.billing.api import Listed
from app.billing.handler import OWN
from app.billing.mirror import Outcome
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import Customer, Snapshot
from app.core import json_text
from app.core.actors import SYSTEM_BILLING
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.db.transactions import savepoint
from app.core.errors import AppError
from app.inbox import receiving
from app.inbox.models import Status
from app.inbox.providers.payloads import Document, key
from app.inbox.providers.provider import Delivery
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass

log = logging.getLogger(__name__)

STAMPS = ("version", "updated_at", "source_timestamp", "read_at", "missing_since")
SHOWN = [c.name for c in Subscription.__table__.columns if c.name not in STAMPS]

FIND_KNOWN = Statement(
    "subscriptions.find_of_page",
    select(Subscription)
    .where(
        Subscription.bp_subscription_id == any_(bindparam("ids", type_=ARRAY(Text))),
        Subscription.bp_provider == bindparam("provider"),
    )
    .order_by(Subscription.created_at.desc()),
)
# A row with another version has been changed since it was compared.
MARK_SEEN = Statement(
    "subscriptions.mark_seen",
    "UPDATE subscriptions s SET read_at = :at, missing_since = NULL"
    " FROM unnest(CAST(:ids AS uuid[]), CAST(:versions AS bigint[])) AS seen (id, version)"
    " WHERE s.id = seen.id AND s.version = seen.version AND (s.read_at IS NULL OR s.read_at < :at)",
)
LET_WAIT = Statement(
    "webhook_events.let_wait",
    "UPDATE webhook_events SET status = 'waiting_tenant', detail = :detail, body = :body,"
    " next_attempt_at = NULL, processed_at = NULL, updated_at = now(), version = version + 1"
    " WHERE id = :id AND status = ANY (CAST(:statuses AS text[]))",
)


class Found(NamedTuple):
    """What a comparison has found about one subscription.

    ``kinds``: those of :func:`mirror.differences`, ``created``, ``waiting`` (for a tenant),
    ``missing`` (at the provider, for the first time) or ``ended`` (because it is still missing).
    """

    subscription_id: str
    tenant_id: UUID | None
    kinds: tuple[str, ...]


class Result(NamedTuple):
    """Of a page: the number of known subscriptions, and what was found."""

    compared: int
    found: Sequence[Found]


Unseen = tuple[Subscription, datetime, Snapshot | None]
"""A subscription of no page, our time just before it was read, and None if there is none such."""


def known(provider: BillingProvider, listed: Listed) -> dict[str, Subscription]:
    """The rows of a page by the provider's ids."""
    ids = [one.subscription_id for _, one in listed.subscriptions]
    rows = FIND_KNOWN.all(ids=ids, provider=provider.name)
    return {row.bp_subscription_id: row for row in rows}


def repair(provider: BillingProvider, listed: Listed, customers: Sequence[Customer]) -> Result:
    """Apply what differs on a page, and mark what does not."""
    for customer in customers:
        mirror.note_customer(provider.name, customer)
    rows, same, found = known(provider, listed), list[Subscription](), list[Found]()
    for document, snapshot in listed.subscriptions:
        row = rows.get(snapshot.subscription_id)
        if row is None:
            found += _add(provider, document, snapshot, listed.at)
        elif kinds := mirror.differences(row, snapshot):
            found += _repair_one(provider, row, snapshot, listed.at, kinds)
        else:
            same.append(row)
    if same:
        ids, versions = [row.id for row in same], [row.version for row in same]
        MARK_SEEN.execute(ids=ids, versions=versions, at=listed.at)
    return Result(len(rows), found)


def _repair_one(
    provider: BillingProvider,
    row: Subscription,
    snapshot: Snapshot,
    at: datetime,
    kinds: set[str],
) -> Iterator[Found]:
    if _apply(provider, snapshot, at) is Outcome.APPLIED:
        _record(row)
        yield Found(row.bp_subscription_id, row.tenant_id, tuple(sorted(kinds)))


def _add(
    provider: BillingProvider, document: Document, snapshot: Snapshot, at: datetime
) -> Iterator[Found]:
    """Add a subscription without a row. One that has ended is not worth waiting for its tenant."""
    outcome = _apply(provider, snapshot, at)
    id_, has_ended = snapshot.subscription_id, snapshot.status_class is StatusClass.ENDED
    if outcome is Outcome.APPLIED:
        yield Found(id_, None, ("created",))
    elif outcome is Outcome.WAITING and not has_ended:
        body = {"type": OWN, "read_at": at, OWN: document.members()}
        _let_wait(provider, id_, json_text.dumps(body), outcome.value)
        yield Found(id_, None, ("waiting",))


def _apply(provider: BillingProvider, snapshot: Snapshot, at: datetime) -> Outcome | None:
    """Apply it; None if that is refused, such as for a tenant that is just deleted."""
    try:
        with savepoint():
            return mirror.apply(provider.name, snapshot, at=at, is_read=True)
    except AppError:
        fields = {"source": provider.name, "subscription_id": snapshot.subscription_id}
        log.exception("billing_comparison_failed", extra=fields)
        return None


def _let_wait(provider: BillingProvider, subscription_id: str, body: bytes, detail: str) -> None:
    """Let an event of the subscription wait for its tenant: one, however often it is found."""
    delivery = Delivery(key(OWN, subscription_id), OWN, body, bp_subscription_id=subscription_id)
    stored = receiving.store(provider.name, [delivery], headers={}, replay_key=None)
    over = (Status.SUCCEEDED, Status.IGNORED, Status.FAILED)
    statuses = [Status.PENDING.value] if stored.added else [status.value for status in over]
    LET_WAIT.execute(id=stored.event_ids[0], statuses=statuses, body=body, detail=detail)


def repair_unseen(
    provider: BillingProvider, unseen: Sequence[Unseen], since: datetime, *, may_end: bool
) -> Result:
    """Apply what was read one by one; what does not exist is missing, and ends in the next run."""
    compared, found = 0, list[Found]()
    for row, at, snapshot in unseen:
        if snapshot is not None:
            compared += 1
            kinds = mirror.differences(row, snapshot)
            repaired = list(_repair_one(provider, row, snapshot, at, kinds or {"other"}))
            found += repaired if kinds else []
        elif kind := _miss(row, at, since, may_end=may_end):
            found.append(Found(row.bp_subscription_id, row.tenant_id, (kind,)))
    return Result(compared, found)


def _miss(row: Subscription, at: datetime, since: datetime, *, may_end: bool) -> str | None:
    """Note that the provider does not know a subscription; end it if it did not before either."""
    key = {"tenant_id": row.tenant_id, "id": row.id}
    current = queries.find_locked(Subscription, **key)
    if current is None or current.version != row.version or current.read_at != row.read_at:
        return None
    if not may_end:
        return "missing"
    if current.missing_since is None:
        queries.update_where(Subscription, key, {"missing_since": at})
        return "missing"
    if current.missing_since >= since:
        return None
    mirror.end_missing(current)
    _record(row)
    return "ended"


def _record(row: Subscription) -> None:
    """Record how a subscription has changed since it was compared."""
    repaired = queries.find_row(Subscription, tenant_id=row.tenant_id, id=row.id)
    if repaired is not None:
        change = queries.difference(row, {name: getattr(repaired, name) for name in SHOWN})
        audit.record("subscription.drift_repaired", repaired, change, actor=SYSTEM_BILLING)
