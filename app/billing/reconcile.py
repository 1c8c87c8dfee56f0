"""The comparison: lists a provider's subscriptions, and repairs what differs or is missing here.

The run of a provider is a row of ``billing_comparisons``. A page is read outside any transaction.
Its repairs, and the cursor of the next page, are one transaction. So a run continues where it ended,
and two processes at the same run repair nothing twice. Subscriptions of no page are then read one by
one, because a list with numbered pages can miss some.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import bindparam, select
from uuid_utils.compat import uuid7

from app.audit import service as audit
from app.billing import api, mirror, repairs
from app.billing.api import NOT_FOUND, REFUSED, Listed, ReadFailed
from app.billing.handler import wrong_mode
from app.billing.health import DRIFT
from app.billing.models import BillingComparison
from app.billing.providers.provider import BillingProvider
from app.billing.repairs import Result, Unseen
from app.billing.snapshots import Customer
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.db.tenancy import platform_transaction, platform_trial
from app.core.db.transactions import on_commit
from app.inbox.providers.payloads import Document
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass

LEASE = timedelta(seconds=120)
TOGETHER = 20  # subscriptions of no page that one transaction looks at
NOBODYS_KEY = "none of the known subscriptions was listed: is the API key that of another account?"
BEGIN = Statement(
    "billing_comparisons.begin",
    "INSERT INTO billing_comparisons AS known"
    " (id, created_at, updated_at, version, provider, started_at, cursor, counts, error)"
    " VALUES (:id, :now, :now, 1, :provider, :now, '', '{}', '')"
    " ON CONFLICT (provider) DO UPDATE SET started_at = :now, updated_at = :now, cursor = '',"
    " after = NULL, busy_until = NULL, counts = '{}', error = '', version = known.version + 1"
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
    .limit(TOGETHER),
    prepare=False,
)


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
            seen |= {row.id for row in repairs.known(provider, listed).values()}
            result = repairs.repair(provider, listed, customers)
        cursor = listed.cursor
        yield result
    after: UUID | None = UUID(int=0)
    while after is not None:
        with platform_transaction():
            rows = NEXT_UNSEEN.all(provider=provider.name, after=after, since=started_at)
        unseen = _read_unseen(provider, [row for row in rows if row.id not in seen])
        with platform_trial():
            result = repairs.repair_unseen(provider, unseen, started_at, may_end=bool(seen))
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
            _advance(state, place, repairs.repair(provider, listed, customers))
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
        result = repairs.repair_unseen(provider, unseen, state.started_at, may_end=may_end)
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
        rows = repairs.known(provider, listed)
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
