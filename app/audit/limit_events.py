"""Records that a threshold of a limit was crossed, or a hold overrun: an audit row and a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from prometheus_client import Counter

from app.audit.service import add_event
from app.core.actors import Actor
from app.core.db.queries import Change
from app.core.db.transactions import on_commit
from app.core.db.writes import Writes

CROSSED = Counter(
    "limits_crossed_total", "Thresholds and holds of limits that were crossed.", ["event"]
)


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
    _add(event, feature, state, tenant_id=tenant_id, actor=actor, into=into)


def announce_crossed(row: Any, percents: Iterable[int], *, tenant_id: UUID, actor: Actor) -> None:
    """Record that ``percents`` of a limit are used; ``row`` has its state."""
    for percent in sorted(percents):
        announce(
            percent,
            tenant_id=tenant_id,
            feature=row.feature,
            used=row.used,
            limit=row.most,
            policy=row.policy,
            resets_at=row.ends,
            actor=actor,
        )


def announce_overrun(row: Any, *, actor: Actor) -> None:
    """Record that ``row.overrun`` was used beyond a hold and does not fit into its limit."""
    state = {
        "hold_id": row.id,
        "over_by": row.overrun,
        "used": row.used,
        "limit": row.most,
        "resets_at": row.ends,
    }
    _add("limit.overrun", row.feature, state, tenant_id=row.tenant_id, actor=actor)


def _add(
    event: str,
    feature: str,
    state: Mapping[str, object],
    *,
    tenant_id: UUID,
    actor: Actor,
    into: Writes | None = None,
) -> None:
    add_event(
        event,
        target_id=feature,
        tenant_id=tenant_id,
        change=Change({}, dict(state)),
        actor=actor,
        data={"feature": feature, **state},
        into=into,
    )
    on_commit(CROSSED.labels(event).inc)
