"""The comparison: lists a provider's subscriptions, and repairs what differs or is missing here.

The run of a provider is a row of ``billing_comparisons``. A page is read outside any transaction.
Its repairs, and the cursor of the next page, are one transaction. So a run continues where it
ended, and if two processes read the same page, one repairs nothing. Subscriptions of no page are
then read one by one, because a list with numbered pages can miss some.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select
from uuid_utils.compat import uuid7

from app.audit import service as audit
from app.billing import api, mirror
from app.billing.api import NOT_FOUND, REFUSED, Read, ReadFailed
from app.billing.handler import OWN, wrong_mode
from app.billing.health import DRIFT
from app.billing.mirror import Outcome
from app.billing.models import BillingComparison
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import Customer
from app.core import json_text
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction, platform_trial
from app.core.db.transactions import on_commit, savepoint
from app.core.errors import AppError
from app.inbox import receiving
from app.inbox.providers.payloads import Document, key
from app.inbox.providers.provider import Delivery
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass

log = logging.getLogger(__name__)

FIRST = UUID(int=0)
NOT_COMPARED = {"created", "waiting", "missing", "ended"}
NOBODYS_KEY = "none of the known subscriptions was listed: is the API key that of another account?"
BEGIN = Statement(
    "billing_comparisons.begin",
    "INSERT INTO billing_comparisons AS known"
    " (id, created_at, updated_at, version, provider, started_at, cursor, counts, error)"
    " VALUES (:id, :now, :now, 1, :provider, :now, '', '{}', '')"
    " ON CONFLICT (provider) DO UPDATE SET started_at = :now, updated_at = :now, cursor = '',"
    " after = NULL, counts = '{}', error = '', version = known.version + 1"
    " WHERE known.finished_at >= known.started_at RETURNING id",
)
NEXT_UNSEEN = Statement(
    "subscriptions.next_unseen",
    select(Subscription)
    .where(
        Subscription.bp_provider == bindparam("provider"),
        Subscription.id > bindparam("after"),
        Subscription.status_class != StatusClass.ENDED.value,
        Subscription.read_at.is_(None) | (Subscription.read_at < bindparam("since")),
    )
    .order_by(Subscription.id)
    .limit(1),
    prepare=False,
)


class Found(NamedTuple):
    """The finding of a comparison about one subscription.

    ``kinds``: those of :func:`mirror.drift`, ``created``, ``waiting`` (for a tenant), ``missing`` (at
    the provider, for the first time) or ``ended`` (because it is still missing); none if it is right.
    """

    subscription_id: str
    tenant_id: UUID | None
    kinds: tuple[str, ...]


class Step(NamedTuple):
    """The result of a read: a page, or a subscription of no page, which the provider may not know.

    ``place`` are the columns of the run that say what comes next.
    """

    place: Mapping[str, Any]
    found: Sequence[Read] = ()
    customers: Sequence[Customer] = ()
    missing: Subscription | None = None


def begin(provider: BillingProvider, *, actor: Actor = SYSTEM_BILLING) -> None:
    """Begin a run, unless a run is under way."""
    begun = BEGIN.first(id=uuid7(), now=utcnow(), provider=provider.name)
    if begun is not None and actor is not SYSTEM_BILLING:
        change, target = queries.Change({}, {"provider": provider.name}), str(begun.id)
        action = "billing_comparison.started"
        audit.add_event(action, target_id=target, tenant_id=None, change=change, actor=actor)


def find(provider: BillingProvider) -> BillingComparison | None:
    return queries.find_row(BillingComparison, provider=provider.name)


def work(provider: BillingProvider, seconds: float) -> Iterator[BillingComparison]:
    """Continue the run for so many seconds; yields its state after each step.

    It ends when another process continues the run. Raises ReadFailed if the provider gives no
    answer; the run then stays where it is.
    """
    end, known = time.monotonic() + seconds, dict[str, Document]()
    with platform_transaction():
        state = find(provider)
    while state is not None and state.is_running:
        try:
            step = _read(provider, state, known)
        except ReadFailed as fault:
            place = {"cursor": ""} if fault.status in REFUSED else {}  # the cursor is too old
            retries.run(partial(_note, state, {"error": str(fault), **place}))
            raise
        state = retries.run(partial(_store, provider, state, step))
        if state is not None:
            yield state
        if time.monotonic() > end:
            break


def preview(provider: BillingProvider) -> Iterator[list[Found]]:
    """The repairs and additions that a run would make now; nothing is written."""
    known = dict[str, Document]()
    cursor: str | None = ""
    while cursor is not None:
        step = _read_page(provider, cursor, known)
        with platform_trial():
            found = _apply(provider, step)
        yield found
        cursor = step.place.get("cursor")


def _note(state: BillingComparison, values: Mapping[str, object]) -> None:
    """Set these values, unless another process has continued the run."""
    same = {"provider": state.provider, "version": state.version}
    queries.update_where(BillingComparison, same, values)


def _store(
    provider: BillingProvider, state: BillingComparison, step: Step
) -> BillingComparison | None:
    """Apply a step, and store how far the run is; None if another process has continued it."""
    tenancy.enter(tenancy.PLATFORM)
    current = queries.find_locked(BillingComparison, provider=provider.name)
    if current is None or current.version != state.version:
        return None
    counts = Counter(state.counts)
    found = _apply(provider, step)
    if step.missing is not None:
        found += _miss(step.missing, state.started_at, may_end=bool(counts["compared"]))
    drift = Counter(kind for one in found for kind in one.kinds if kind in mirror.KINDS)
    if drift:
        named = {f"{provider.name} {kind}": count for kind, count in drift.items()}
        on_commit(lambda: DRIFT.add(named))
    counts["compared"] += sum(not NOT_COMPARED & {*one.kinds} for one in found)
    counts["repaired"] += sum(not drift.keys().isdisjoint(one.kinds) for one in found)
    counts.update(kind for one in found for kind in one.kinds)
    is_suspicious = "finished_at" in step.place and counts["missing"] and not counts["compared"]
    error = NOBODYS_KEY if is_suspicious else ""
    values = {"counts": dict(counts), "error": error, **step.place}
    return queries.update_row(BillingComparison, current, values)[0]


def _read(provider: BillingProvider, state: BillingComparison, known: dict[str, Document]) -> Step:
    """Read what comes next: a page, or the next row that no page had."""
    if state.after is None:
        return _read_page(provider, state.cursor, known)
    with platform_transaction():
        row = NEXT_UNSEEN.first(provider=provider.name, after=state.after, since=state.started_at)
    if row is None:
        return Step({"finished_at": utcnow()})
    place = {"after": row.id}
    try:
        return Step(place, [api.read_subscription(provider, row.bp_subscription_id)])
    except ReadFailed as fault:
        if not fault.is_final:
            raise
        return Step(place, missing=row if fault.status == NOT_FOUND else None)


def _read_page(provider: BillingProvider, cursor: str, known: dict[str, Document]) -> Step:
    """A page, with the customers whose metadata may decide a tenant; without what is unreadable."""
    at, page = api.read_page(provider, cursor)
    place = {"after": FIRST} if page.cursor is None else {"cursor": page.cursor}
    found = []
    for document in page.subscriptions:
        with _skipping_unreadable():
            found.append(Read(at, document, api.complete(provider, document, known)))
    with platform_transaction():
        wanted = {
            one.snapshot.customer_id
            for one in found
            if one.snapshot.status_class is not StatusClass.ENDED
            and wrong_mode(one.snapshot) is None
            and mirror.needs_customer(provider.name, one.snapshot)
        }
    customers = list[Customer]()
    for customer_id in sorted(wanted):
        with _skipping_unreadable():
            customers.append(api.read_customer(provider, customer_id))
    return Step(place, found, customers)


@contextmanager
def _skipping_unreadable() -> Iterator[None]:
    try:
        yield
    except ReadFailed as fault:
        if not fault.is_final:
            raise
        log.warning("billing_object_unreadable", extra={"reason": str(fault)})


def _apply(provider: BillingProvider, step: Step) -> list[Found]:
    """Repair what differs, and add what is new."""
    for customer in step.customers:
        mirror.note_customer(provider.name, customer)
    return [one for read in step.found for one in _repair(provider, read)]


def _repair(provider: BillingProvider, read: Read) -> Iterator[Found]:
    snapshot, name = read.snapshot, provider.name
    id_ = snapshot.subscription_id
    if wrong_mode(snapshot) is not None:
        return
    try:
        with savepoint():
            done = mirror.apply(name, snapshot, at=read.at, is_read=True)
    except AppError:  # such as for a tenant that is just deleted
        log.exception("billing_comparison_failed", extra={"source": name, "subscription_id": id_})
        return
    before, after = done.before, done.after
    if done.outcome is Outcome.TAKEN:
        log.warning("billing_subscription_id_taken", extra={"source": name, "subscription_id": id_})
    elif done.outcome is Outcome.WAITING:
        _wait_for_tenant(provider, read)
        yield Found(id_, None, ("waiting",))
    elif before is not None and before.bp_provider == name:
        kinds = mirror.drift(before, after or before)
        if kinds:
            _record(before, after or before)
        yield Found(id_, before.tenant_id, tuple(sorted(kinds)))
    elif after is not None:
        yield Found(id_, after.tenant_id, ("created",))


def _wait_for_tenant(provider: BillingProvider, read: Read) -> None:
    """Store an event of the subscription unless it has an event; the reader lets it wait."""
    id_ = read.snapshot.subscription_id
    body = json_text.dumps({"type": OWN, "read_at": read.at, OWN: read.document.members()})
    delivery = Delivery(key(OWN, id_), OWN, body, bp_subscription_id=id_)
    if receiving.store(provider.name, [delivery], headers={}, replay_key=None).added:
        receiving.notify(provider.name)


def _miss(row: Subscription, since: datetime, *, may_end: bool) -> Iterator[Found]:
    """Note that the provider does not know a subscription; end it if it did not before either."""
    place = {"tenant_id": row.tenant_id, "id": row.id}
    current = queries.find_locked(Subscription, **place)
    if current is None or (current.version, current.read_at) != (row.version, row.read_at):
        return
    kind = "missing"
    if may_end and current.missing_since is None:
        queries.update_where(Subscription, place, {"missing_since": utcnow()})
    elif may_end and (current.missing_since or since) < since:
        _record(row, mirror.end_missing(current))
        kind = "ended"
    yield Found(row.bp_subscription_id, row.tenant_id, (kind,))


def _record(before: Subscription, after: Subscription) -> None:
    change = mirror.difference(before, after)
    audit.record("subscription.drift_repaired", after, change, actor=SYSTEM_BILLING)
