"""Records that a threshold of a limit was crossed, or a hold overrun: an audit row and a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
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


class LimitState(NamedTuple):
    """The state of a limit, as the database functions return it; ``ends`` is None: never."""

    feature: str
    used: int
    most: int
    policy: str
    ends: datetime | None


def announce_crossed(
    row: Any, percents: Iterable[int], *, tenant_id: UUID, actor: Actor, into: Writes | None = None
) -> None:
    """Record for each of ``percents`` that so much of a limit is used.

    The event is ``limit.warning``, or ``limit.reached`` at 100. ``row`` has the limit's state.
    """
    for percent in sorted(percents):
        event = "limit.reached" if percent >= 100 else "limit.warning"
        state = {
            "used": row.used,
            "limit": row.most,
            "percent": percent,
            "policy": row.policy,
            "resets_at": row.ends,
        }
        _add(event, row.feature, state, tenant_id=tenant_id, actor=actor, into=into)


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
