"""Brings balances of credits up to date, and records what has expired."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from app.core.actors import SYSTEM_JOB
from app.core.db import retries, tenancy
from app.core.db.batches import BATCH, in_batches
from app.core.jobs.queues import Queue, job, logged_errors
from app.credits import service
from app.credits.statements import LIST_DUE


@job(queue=Queue.MAINTENANCE, every=60)
def refresh_credits() -> None:
    """Expire and grant what is due, each balance in a transaction of its own.

    Then record what has expired. Balances are correct before that, too.
    """
    failed: set[tuple[UUID, str]] = set()
    while True:
        with tenancy.platform_transaction():
            due = set(LIST_DUE.all(limit=BATCH + len(failed))) - failed
        for tenant_id, feature in due:
            failed.add((tenant_id, feature))
            with logged_errors("credits_not_refreshed", tenant_id=str(tenant_id)):
                retries.run(partial(_refresh, tenant_id, feature))
                failed.remove((tenant_id, feature))
        if not due:
            break
    in_batches(partial(service.announce_expired, actor=SYSTEM_JOB))


def _refresh(tenant_id: UUID, feature: str) -> None:
    tenancy.enter(tenancy.PLATFORM)
    service.refresh(tenant_id, feature, actor=SYSTEM_JOB)
