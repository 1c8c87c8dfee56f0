"""Announces the overrides whose time is over. Evaluation compares the time itself."""

from __future__ import annotations

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import writes

BATCH = 500
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


def announce(*, actor: Actor) -> bool:
    """Record ``override.expired`` for some overrides, once for each expiry.

    Returns whether there may be others. An override with a new expiry is announced again.
    """
    expired = TAKE_EXPIRED.all(limit=BATCH)
    with writes() as w:
        for override in expired:
            change = Change({name: getattr(override, name) for name in SHOWN}, {})
            audit.record("override.expired", override, change, actor=actor, into=w)
    return len(expired) == BATCH
