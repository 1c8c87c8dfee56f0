"""Announces the overrides whose time is over. Evaluation compares the time itself."""

from __future__ import annotations

from app.audit import service as audit
from app.core.actors import SYSTEM_JOB
from app.core.db.batches import in_batches
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import writes
from app.core.jobs.queues import Queue, job

SHOWN = ("flag_key", "flag_value", "expires_at")

TAKE_EXPIRED = Statement(
    "feature_overrides.take_expired",
    """
    UPDATE feature_overrides SET announced_expiry = expires_at WHERE (tenant_id, id) IN (
        SELECT tenant_id, id FROM feature_overrides
        WHERE expires_at <= now() AND expires_at IS DISTINCT FROM announced_expiry
        ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
    ) RETURNING *
    """,
)
"""The row's version stays: what a reader sees of an override does not change."""


@job(queue=Queue.MAINTENANCE, every=30)
def announce_expiries() -> None:
    """Record ``override.expired`` once for each expiry, in batches, each in its own transaction.

    An override with a new expiry is announced again.
    """
    in_batches(_announce)


def _announce(limit: int) -> int:
    expired = TAKE_EXPIRED.all(limit=limit)
    with writes() as w:
        for override in expired:
            change = Change({name: getattr(override, name) for name in SHOWN}, {})
            audit.record("override.expired", override, change, actor=SYSTEM_JOB, into=w)
    return len(expired)
