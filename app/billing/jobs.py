"""Background jobs: apply changed prices, events whose tenant has come, and compare with providers."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import select

from app.billing import mirror, reconcile
from app.billing.api import ReadFailed
from app.billing.handler import WAITS_FOR, told_by
from app.billing.health import comparisons, has_api_key
from app.billing.providers import PROVIDERS
from app.config import current_config
from app.core.actors import SYSTEM_JOB
from app.core.clock import utcnow
from app.core.db import queries, retries, tenancy
from app.core.db.statements import Statement
from app.core.jobs.queues import Queue, job, logged_errors
from app.inbox import service as inbox
from app.inbox.providers.payloads import Unreadable, Unwanted
from app.plans.models import PlanPrice
from app.plans.prices import FIRST, find_changed

log = logging.getLogger(__name__)

WORKING_TIME = 60  # seconds after which a comparison lets others have a turn
BATCH = 500  # subscriptions
MAX_WAITING = 200  # events of one run of the job

FIND_PENDING = Statement(
    "plan_prices.find_pending",
    select(PlanPrice).where(PlanPrice.is_pending).order_by(PlanPrice.updated_at),
)
# Those that were looked at first, first.
TAKE_WAITING = Statement(
    "webhook_events.take_waiting",
    "UPDATE webhook_events SET updated_at = now() WHERE id IN ("
    "  SELECT id FROM webhook_events WHERE status = 'waiting_tenant' AND body IS NOT NULL"
    "  ORDER BY updated_at LIMIT :limit FOR UPDATE SKIP LOCKED)"
    " RETURNING id, source, body, detail",
    prepare=False,
)


@job(queue=Queue.MAINTENANCE, timeout=3600, every=60)
def follow_prices() -> None:
    """Apply changed prices to the subscriptions that have them, each in its own transaction.

    A price stays pending until all its subscriptions have followed.
    """
    with tenancy.platform_transaction():
        pending = FIND_PENDING.all()
    for price in pending:
        left, after = 0, FIRST
        while page := _find_changed(price, after):
            left, after = left + len(page), page[-1]
            for subscription_id in page:
                with logged_errors("price_not_followed", subscription_id=str(subscription_id)):
                    retries.run(partial(_follow, subscription_id))
                    left -= 1
        if not left:
            retries.run(partial(_settle, price))


@job(queue=Queue.WEBHOOKS, every=60)
def apply_waiting_events() -> None:
    """Apply events whose tenant was created, or named, otherwise than by a mapping."""
    with tenancy.platform_transaction():
        waiting = TAKE_WAITING.all(limit=MAX_WAITING)
        inbox.release([event.id for event in waiting if _has_tenant(event)])


@job(queue=Queue.MAINTENANCE, every=60)
def compare_with_providers() -> None:
    """Begin the comparisons that are due, and continue those that are under way."""
    config = current_config()
    hours = config.billing_reconcile_hours
    with tenancy.platform_transaction():
        known = comparisons()
        for name, provider in PROVIDERS.items():
            if not has_api_key(provider, config):
                continue
            last = known.get(name)
            if hours and (last is None or utcnow() - last.started_at >= timedelta(hours=hours)):
                reconcile.begin(provider)
            compare.push(name)


@job(queue=Queue.MAINTENANCE)
def compare(name: str) -> None:
    """Continue the comparison with a provider; the periodic job continues what is left."""
    try:
        for _ in reconcile.work(PROVIDERS[name], WORKING_TIME):
            pass
    except ReadFailed as fault:
        log.warning("billing_comparison_stopped", extra={"source": name, "reason": str(fault)})


def _find_changed(price: PlanPrice, after: UUID) -> list[UUID]:
    with tenancy.platform_transaction():
        return [one.id for one in find_changed(price, limit=BATCH, after=after)]


def _follow(subscription_id: UUID) -> None:
    tenancy.enter(tenancy.PLATFORM)
    mirror.follow_prices(subscription_id, actor=SYSTEM_JOB)


def _settle(price: PlanPrice) -> None:
    """Note that the price is applied, unless it has changed since."""
    key = {"id": price.id, "version": price.version}
    if price.is_deleted:
        queries.delete_where(PlanPrice, **key)
    else:
        queries.update_where(PlanPrice, key, {"is_pending": False})


def _has_tenant(event: Any) -> bool:
    """Whether the event can be applied now, or can no longer be read."""
    try:
        found = told_by(PROVIDERS[event.source], event.body)
        tenant = found.tenant or event.detail.removeprefix(WAITS_FOR)
        return mirror.has_tenant(event.source, replace(found, tenant=tenant))
    except (Unreadable, Unwanted, KeyError):
        return True
