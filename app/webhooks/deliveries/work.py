"""The sender's work in the database: add deliveries, claim due ones, record results, disable.

The rows are the truth. A claimed delivery has a lease: if its sender is killed, another sender
claims it when the lease is over. So each event is delivered at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.core.actors import SYSTEM_WEBHOOKS
from app.core.clock import utcnow
from app.core.db import retries, tenancy
from app.events.positions import FROZEN
from app.events.service import find_events
from app.webhooks.deliveries import statements
from app.webhooks.deliveries.attempt import GONE, Result, Work
from app.webhooks.endpoints import service as endpoints
from app.webhooks.endpoints.models import DisabledReason

BATCH = 1_000  # events whose deliveries are added by one transaction
TOGETHER = 5  # deliveries of one endpoint at a time
OF_OWNER = 50  # deliveries of one tenant, or of the platform, at a time: half of a sender's
LEASE = 45  # seconds; more than an attempt takes
FAILING_HOURS = 120  # of nothing but failure, after which an endpoint is disabled


def prepare() -> None:
    """Create the row of the feed's position if it is missing."""
    with tenancy.platform_transaction():
        statements.ENSURE_FEED.execute()


def add_deliveries() -> int:
    """Add the deliveries of the next events that have positions; the number of these events."""
    with tenancy.platform_transaction():
        return statements.ADD_DELIVERIES.scalar(batch=BATCH, frozen=FROZEN) or 0


def exchange(
    results: Sequence[Result], most: int, *, slow: Sequence[UUID] = (), most_slow: int = 0
) -> tuple[list[Work], int]:
    """Store the results of attempts, and claim deliveries that are due, at most ``most``.

    At most ``most_slow`` of them belong to the endpoints in ``slow``.

    None is claimed while another sender claims. Endpoints that answered 410 or fail for too long are
    disabled; also returns how many. It is one transaction, because its round trips and its commit
    limit how many deliveries a sender makes.
    """

    def both() -> tuple[list[Work], int]:
        tenancy.enter(tenancy.PLATFORM)
        disabled = _record(results) if results else 0
        return _claim(most, slow, most_slow) if most > 0 else [], disabled

    return retries.run(both)


def _claim(most: int, slow: Sequence[UUID], most_slow: int) -> list[Work]:
    if not statements.TRY_LOCK.one().is_mine:
        return []
    limits = {"most": most, "together": TOGETHER, "of_owner": OF_OWNER, "most_slow": most_slow}
    ids = [
        UUID(found) for found in statements.CLAIM.scalars(**limits, slow=list(slow), lease=LEASE)
    ]
    if not ids:
        return []
    rows = statements.LOAD.all(ids=ids)
    events = find_events([row.WebhookDelivery.event_id for row in rows])
    return [
        Work(delivery, endpoint, state, events.get(delivery.event_id))
        for delivery, endpoint, state in rows
    ]


def _record(results: Sequence[Result]) -> int:
    now = utcnow()
    outcomes = [result.outcome() for result in results]
    statements.RECORD.execute(
        ids=[result.work.delivery.id for result in results],
        attempts_at=[result.work.delivery.attempted_at for result in results],
        statuses=[status.value for status, _ in outcomes],
        next_attempts_at=[
            None if wait is None else now + timedelta(seconds=wait) for _, wait in outcomes
        ],
        codes=[result.code for result in results],
        bodies=[result.body for result in results],
        errors=[result.error for result in results],
        durations=[result.milliseconds for result in results],
    )
    failed = {one.work.endpoint.id for one in results if not one.has_succeeded}
    gone = {one.work.endpoint.id for one in results if one.code == GONE}
    disabled = dict.fromkeys(sorted(gone), DisabledReason.GONE)
    if failed - gone:
        before = now - timedelta(hours=FAILING_HOURS)
        owners = {one.work.endpoint.tenant_id for one in results}
        failing = statements.FIND_FAILING.scalars(
            tenant_ids=sorted(owners), ids=sorted(failed - gone), before=before
        )
        disabled |= dict.fromkeys(failing, DisabledReason.FAILING)
    return sum(
        endpoints.disable(endpoint_id, reason, actor=SYSTEM_WEBHOOKS)
        for endpoint_id, reason in disabled.items()
    )
