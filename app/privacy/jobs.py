"""The background jobs that delete tenants and erase users."""

from __future__ import annotations

import time
from uuid import UUID

from app.core.db import tenancy
from app.core.jobs.queues import Queue, job
from app.privacy.people import erasure_requests
from app.privacy.tenants import deletion_stages, deletion_statements

TURN = 30.0  # seconds of work on one tenant, before the worker takes the next job of the queue
PAUSE = 0.02  # seconds between two batches, which leaves the disk to others


@job(queue=Queue.MAINTENANCE)
def delete_tenant(tenant_id: str) -> None:
    """Delete a tenant whose time has come.

    It is harmless to run it twice, or again after it was killed.
    """
    deadline = time.monotonic() + TURN
    while deletion_stages.delete_batch(UUID(tenant_id)):
        if time.monotonic() > deadline:
            delete_tenant.push(tenant_id)
            return
        time.sleep(PAUSE)


@job(queue=Queue.MAINTENANCE, every=60)
def delete_due_tenants() -> None:
    """Queue the deletions that are due and that no worker has worked on for a minute."""
    delete_tenant.push_stalled(deletion_statements.TAKE_STALLED)


@job(queue=Queue.MAINTENANCE, timeout=3600, every=60)
def erase_users() -> None:
    """Erase the users whose erasure was requested and not tried for a minute, up to 100 together.

    An erasure that was killed begins again.
    """
    with tenancy.platform_transaction():
        due = erasure_requests.TAKE_STALLED.all()
    if due:
        erasure_requests.erase_requested([(row.tenant_id, row.user_id) for row in due])
        erase_users.push()
