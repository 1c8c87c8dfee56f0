"""The comparison: lists a provider's subscriptions, and repairs what differs or is missing here.

The run of a provider is a row of ``billing_comparisons``. A page is read outside any transaction.
Its repairs, and the cursor of the next page, are one transaction. So a run continues where it ended,
and two processes at the same run repair nothing twice. Subscriptions of no page are then read one by
one, because a list with numbered pages can miss some.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam, select
from uuid_utils.compat import uuid7

from app.audit import service as audit
from app.billing import api, mirror
from app.billing.api import NOT_FOUND, REFUSED, Listed, ReadFailed
from app.billing.handler import OWN, wrong_mode
from app.billing.health import DRIFT
from app.billing.mirror import Outcome
from app.billing.models import BillingComparison
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import Customer, Snapshot
from app.core import json_text
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction, platform_trial
from app.core.db.transactions import on_commit, savepoint
from app.core.errors import AppError
from app.inbox import receiving
from app.inbox.models import Status
from app.inbox.providers.payloads import Document, key
from app.inbox.providers.provider import Delivery
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=120)
TOGETHER = 20  # subscriptions of no page that one transaction looks at
NOBODYS_KEY = "none of the known subscriptions was listed: is the API key that of another account?"
STAMPS = ("version", "updated_at", "source_timestamp", "read_at", "missing_since")
SHOWN = [c.name for c in Subscription.__table__.columns if c.name not in STAMPS]

BEGIN = Statement(
    "billing_comparisons.begin",
    "INSERT INTO billing_comparisons AS known"
    " (id, created_at, updated_at, version, provider, started_at, cursor, counts, error)"
    " VALUES (:id, :now, :now, 1, :provider, :now, '', '{}', '')"
    " ON CONFLICT (provider) DO UPDATE SET started_at = :now, updated_at = :now, cursor = '',"
    " after = NULL, busy_until = NULL, counts = '{}', error = '', version = known.version + 1"
    " WHERE known.finished_at >= known.started_at RETURNING id",
)
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
    .limit(TOGETHER),
    prepare=False,
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


def begin(provider: BillingProvider, *, actor: Actor = SYSTEM_BILLING) -> None:
    """Begin a run, unless one is under way."""
    begun = BEGIN.first(id=uuid7(), now=utcnow(), provider=provider.name)
    if begun is not None and actor is not SYSTEM_BILLING:
        change, target = queries.Change({}, {"provider": provider.name}), str(begun.id)
        action = "billing_comparison.started"
        audit.add_event(action, target_id=target, tenant_id=None, change=change, actor=actor)


def find(provider: BillingProvider) -> BillingComparison | None:
    return queries.find_row(BillingComparison, provider=provider.name)


def work(provider: BillingProvider, seconds: float) -> Iterator[BillingComparison]:
    """Continue the run for so many seconds; yields its state after each step.

    Nothing is yielded if there is none, or if another process is at it. Raises ReadFailed if the
    provider gives no answer; the run then stays where it is.
    """
    end, known = time.monotonic() + seconds, dict[str, Document]()
    state = retries.run(partial(_take, provider))
    try:
        while state is not None and state.is_running:
            step = _next_page if state.after is None else _next_unseen
            state = step(provider, state, known)
            yield state
            if time.monotonic() > end:
                break
    except ReadFailed as fault:
        if state is not None:
            restarts = {"cursor": ""} if fault.status in REFUSED else {}  # the cursor is too old
            retries.run(partial(_save, state, error=str(fault), busy_until=None, **restarts))
        state = None
        raise
    finally:
        if state is not None:
            retries.run(partial(_save, state, busy_until=None))


def preview(provider: BillingProvider) -> Iterator[Result]:
    """What a run would find now; nothing is written."""
    cursor: str | None = ""
    seen, known, started_at = set[UUID](), dict[str, Document](), utcnow()
    while cursor is not None:
        listed, customers = _read(provider, cursor, known)
        with platform_trial():
            seen |= {row.id for row in _known(provider, listed).values()}
            result = _repair(provider, listed, customers)
        cursor = listed.cursor
        yield result
    after: UUID | None = UUID(int=0)
    while after is not None:
        with platform_transaction():
            rows = NEXT_UNSEEN.all(provider=provider.name, after=after, since=started_at)
        unseen = _read_unseen(provider, [row for row in rows if row.id not in seen])
        with platform_trial():
            result = _repair_unseen(provider, unseen, started_at, may_end=bool(seen))
        after = rows[-1].id if rows else None
        yield result


def _take(provider: BillingProvider) -> BillingComparison | None:
    """The run, if it is under way and no other process is at it."""
    tenancy.enter(tenancy.PLATFORM)
    state, now = queries.find_locked(BillingComparison, provider=provider.name), utcnow()
    if state is None or not state.is_running or (state.busy_until and state.busy_until > now):
        return None
    return queries.update_row(BillingComparison, state, {"busy_until": now + LEASE})[0]


def _save(state: BillingComparison, **values: object) -> None:
    """Set these values, unless another process has continued the run."""
    key = {"provider": state.provider, "version": state.version}
    queries.update_where(BillingComparison, key, {**values, "version": state.version + 1})


def _next_page(
    provider: BillingProvider, state: BillingComparison, known: dict[str, Document]
) -> BillingComparison:
    listed, customers = _read(provider, state.cursor, known)
    place = {"after": UUID(int=0)} if listed.cursor is None else {"cursor": listed.cursor}
    return retries.run(
        lambda: (
            _advance(state, place, _repair(provider, listed, customers))
            if _is_ours(state)
            else _current(state)
        )
    )


def _next_unseen(
    provider: BillingProvider, state: BillingComparison, known: dict[str, Document]
) -> BillingComparison:
    with platform_transaction():
        rows = NEXT_UNSEEN.all(provider=provider.name, after=state.after, since=state.started_at)
    unseen = _read_unseen(provider, rows)
    may_end = bool(state.counts.get("compared"))

    def work() -> BillingComparison:
        if not _is_ours(state):
            return _current(state)
        result = _repair_unseen(provider, unseen, state.started_at, may_end=may_end)
        if rows:
            return _advance(state, {"after": rows[-1].id}, result)
        is_suspicious = not may_end and state.counts.get("missing")
        end = {"finished_at": utcnow(), "error": NOBODYS_KEY if is_suspicious else ""}
        return _advance(state, end, result)

    return retries.run(work)


def _is_ours(state: BillingComparison) -> bool:
    """Whether no other process has continued the run."""
    tenancy.enter(tenancy.PLATFORM)
    found = queries.find_locked(BillingComparison, provider=state.provider)
    return found is not None and found.version == state.version


def _current(state: BillingComparison) -> BillingComparison:
    return queries.get_row(BillingComparison, state.id)


def _advance(
    state: BillingComparison, place: Mapping[str, object], result: Result
) -> BillingComparison:
    """Store how far the run is, and what it has found."""
    counts = Counter(state.counts)
    counts["compared"] += result.compared
    kinds = Counter(kind for one in result.found for kind in one.kinds)
    repaired = Counter({kind: kinds[kind] for kind in kinds if kind in mirror.KINDS})
    counts.update(kinds)
    counts["repaired"] += sum(not repaired.keys().isdisjoint(one.kinds) for one in result.found)
    drift = {f"{state.provider} {kind}": count for kind, count in repaired.items()}
    if drift:
        on_commit(lambda: DRIFT.add(drift))
    values = {"busy_until": utcnow() + LEASE, "error": "", "counts": dict(counts), **place}
    return queries.update_row(BillingComparison, state, values)[0]


def _read(
    provider: BillingProvider, cursor: str, known: dict[str, Document]
) -> tuple[Listed, list[Customer]]:
    """The next page, and the customers whose metadata may decide a tenant."""
    listed = api.read_page(provider, cursor, known)
    with platform_transaction():
        rows = _known(provider, listed)
        wanted = {
            one.customer_id
            for _, one in listed.subscriptions
            if one.subscription_id not in rows
            and one.status_class is not StatusClass.ENDED
            and wrong_mode(one) is None
            and mirror.needs_customer(provider.name, one, "")
        }
    customers = []
    for customer_id in sorted(wanted):
        try:
            customers.append(api.read_customer(provider, customer_id))
        except ReadFailed as fault:
            if not fault.is_final:
                raise
    return listed, customers


def _read_unseen(provider: BillingProvider, rows: Sequence[Subscription]) -> list[Unseen]:
    """Read subscriptions of no page; those without a readable answer are left out."""
    found: list[Unseen] = []
    for row in rows:
        at = utcnow()
        try:
            found.append((row, *api.read_subscription(provider, row.bp_subscription_id)))
        except ReadFailed as fault:
            if fault.status == NOT_FOUND:
                found.append((row, at, None))
            elif not fault.is_final:
                raise
    return found


def _known(provider: BillingProvider, listed: Listed) -> dict[str, Subscription]:
    """The rows of a page by the provider's ids."""
    ids = [one.subscription_id for _, one in listed.subscriptions]
    rows = FIND_KNOWN.all(ids=ids, provider=provider.name)
    return {row.bp_subscription_id: row for row in rows}


def _repair(provider: BillingProvider, listed: Listed, customers: Sequence[Customer]) -> Result:
    """Apply what differs on a page, and mark what does not."""
    for customer in customers:
        mirror.note_customer(provider.name, customer)
    rows, same, found = _known(provider, listed), list[Subscription](), list[Found]()
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


def _repair_unseen(
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
