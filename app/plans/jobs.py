"""Updates tenants' plans when assigned plans end and when presets are created later.

It also announces the coming end of assigned plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from app.core.actors import SYSTEM_JOB
from app.core.db import retries, tenancy
from app.core.db.batches import BATCH, in_batches
from app.core.jobs.queues import Queue, job, logged_errors
from app.plans import assignments, following


@job(queue=Queue.MAINTENANCE, every=30)
def follow_plans() -> None:
    """End the assigned plans that are over, and follow presets that were created later.

    Each tenant has a transaction of its own: a failure is logged and delays no other tenant. It is
    harmless to run it twice. The coming ends are announced in batches.
    """
    with logged_errors("endings_not_announced"):
        in_batches(partial(assignments.announce_endings, actor=SYSTEM_JOB))
    _each(assignments.find_ended, assignments.end)
    _each(following.find_behind, following.follow_plan)


def _each(find: Callable[..., Sequence[UUID]], bring: Callable[..., object]) -> None:
    """Call ``bring`` for each tenant that ``find`` names, until it names no further tenant."""
    done: set[UUID] = set()
    failed = 0
    while True:
        with tenancy.platform_transaction():
            found = set(find(limit=BATCH + failed)) - done
        if not found:
            return
        for tenant_id in found:
            failed += 1
            with logged_errors("plan_not_followed", tenant_id=str(tenant_id)):
                retries.run(partial(_bring, bring, tenant_id))
                failed -= 1
        done |= found


def _bring(bring: Callable[..., object], tenant_id: UUID) -> None:
    tenancy.enter(tenancy.PLATFORM)
    bring(tenant_id, actor=SYSTEM_JOB)
