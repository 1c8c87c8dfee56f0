"""Records that the usage of a limit has crossed a threshold: an audit row and a metric."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from prometheus_client import Counter

from app.audit.service import add_event
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.transactions import on_commit
from app.core.db.writes import Writes

CROSSED = Counter("limits_crossed_total", "Thresholds of limits that were crossed.", ["event"])


def announce(
    percent: int,
    *,
    tenant_id: UUID,
    feature: str,
    used: int,
    limit: int,
    policy: str,
    resets_at: datetime | None,
    actor: Actor,
    into: Writes | None = None,
) -> None:
    """Record that ``percent`` of a limit are used: ``limit.warning``, or ``limit.reached`` at 100.

    ``resets_at`` is None if the count never starts again at zero.
    """
    event = "limit.reached" if percent >= 100 else "limit.warning"
    state = {
        "used": used,
        "limit": limit,
        "percent": percent,
        "policy": policy,
        "resets_at": resets_at,
    }
    add_event(
        event,
        target_id=feature,
        tenant_id=tenant_id,
        change=Change({}, state),
        actor=actor,
        data={"feature": feature, **state},
        into=into,
    )
    on_commit(CROSSED.labels(event).inc)
