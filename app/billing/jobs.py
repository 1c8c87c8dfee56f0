"""Background jobs: apply changed prices, and the events whose tenant has come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import select

from app.billing import mirror
from app.billing.providers import PROVIDERS
from app.core.actors import SYSTEM_JOB
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.jobs.queues import Queue, job, logged_errors
from app.inbox import service as inbox
from app.inbox.providers.payloads import Unreadable, Unwanted, parse_object
from app.plans.models import PlanPrice
from app.plans.prices import CHANGES

WORKING_TIME = 60  # seconds after which a job queues the next one, so that others get a turn
WINDOW = 1000  # subscriptions that one statement looks at
MAX_WAITING = 200  # events of one run of the job

FIND_PENDING = Statement(
    "plan_prices.find_pending",
    select(PlanPrice).where(PlanPrice.is_pending).order_by(PlanPrice.updated_at),
)
NEXT_SUBSCRIPTIONS = Statement(
    "subscriptions.next_of_provider",
    f"SELECT s.id, coalesce({CHANGES}, false) AS is_changed FROM ("  # noqa: S608
    " SELECT * FROM subscriptions WHERE bp_provider = :provider AND id > :after"
    " ORDER BY id LIMIT :limit"
    ") s LEFT JOIN LATERAL plan_of_items(s.bp_provider, s.items) f ON true ORDER BY s.id",
    prepare=False,
)
# Those that were looked at first, first.
TAKE_WAITING = Statement(
    "webhook_events.take_waiting",
    "UPDATE webhook_events SET updated_at = now() WHERE id IN ("
    "  SELECT id FROM webhook_events WHERE status = 'waiting_tenant' AND body IS NOT NULL"
    "  ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED)"
    " RETURNING id, source, body",
    prepare=False,
)


@job(queue=Queue.MAINTENANCE, every=60)
def follow_prices() -> None:
    """Apply changed prices to the subscriptions that have them, each in its own transaction.

    A price stays pending until all its subscriptions have followed.
    """
    end = time.monotonic() + WORKING_TIME
    with tenancy.platform_transaction():
        pending = FIND_PENDING.all()
    for price in pending:
        failed = 0
        for subscription_id in _changed(price):
            failed += 1
            with logged_errors("price_not_followed", subscription_id=str(subscription_id)):
                retries.run(partial(_follow, subscription_id))
                failed -= 1
            if time.monotonic() > end:
                follow_prices.push()
                return
        if not failed:
            retries.run(partial(_settle, price))


@job(queue=Queue.WEBHOOKS, every=60)
def apply_waiting_events() -> None:
    """Apply events whose tenant was created, or named, otherwise than by a mapping."""
    with tenancy.platform_transaction():
        waiting = TAKE_WAITING.all(limit=MAX_WAITING)
        inbox.release([event.id for event in waiting if _has_tenant(event)])


def _changed(price: PlanPrice) -> Iterator[UUID]:
    """The subscriptions whose plan or limits the price changes."""
    after = UUID(int=0)
    key = {name: getattr(price, name) for name in ("provider", "price_id", "lookup_key")}
    found: Sequence[Any] = (None,)
    while found:
        with tenancy.platform_transaction():
            found = NEXT_SUBSCRIPTIONS.all(**key, after=after, limit=WINDOW)
        yield from (one.id for one in found if one.is_changed)
        after = found[-1].id if found else after


def _follow(subscription_id: UUID) -> None:
    tenancy.enter(tenancy.PLATFORM)
    mirror.follow_prices(subscription_id, actor=SYSTEM_JOB)


def _settle(price: PlanPrice) -> None:
    """Note that the price is applied, unless it was changed meanwhile."""
    tenancy.enter(tenancy.PLATFORM)
    if price.is_deleted:
        queries.delete_where(PlanPrice, id=price.id, version=price.version)
    else:
        key = {"id": price.id, "version": price.version}
        queries.update_where(PlanPrice, key, {"is_pending": False})


def _has_tenant(event: Any) -> bool:
    """Whether the event can be applied now; one that cannot be read any more, too."""
    try:
        return mirror.has_tenant(
            event.source, PROVIDERS[event.source].event(parse_object(event.body))
        )
    except (Unreadable, Unwanted, KeyError):
        return True
