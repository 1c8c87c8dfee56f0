"""Usage by day, and when a limit ends at the current pace.

A job stores the counts of each day, and how much they have grown since they were stored before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from app.audit.service import add_event
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.queries import Change
from app.core.db.writes import writes
from app.core.errors import Invalid, value_error
from app.memberships.seats import SEATS
from app.usage.day_statements import FORECAST, LIST_DAYS, STORE, TAKE_FORECASTS
from app.usage.models import EPOCH
from app.usage.service import FAULTS

STILL_COUNTED = timedelta(days=2)  # after the end of a period, by what was held in it


class Place(NamedTuple):
    """A counter's place in the order in which counts are stored."""

    period_end: datetime | None
    tenant_id: UUID = UUID(int=0)
    feature: str = ""
    period_start: datetime = EPOCH


def list_days(tenant_id: UUID, feature: str, *, days: int) -> dict[str, object]:
    """The use on each of the last ``days``, the oldest first, and the forecast.

    Raises NotFound for an unknown tenant or limit, and Invalid for seats.
    """
    if feature == SEATS:
        raise Invalid(value_error(["query", "feature"], FAULTS["seats"][1], feature))
    forecast = FORECAST.get("limit", tenant_id=tenant_id, feature=feature)
    found = LIST_DAYS.all(tenant_id=tenant_id, feature=feature, days=days)
    return {"feature": feature, "days": found, "forecast": forecast}


def first_place() -> Place:
    """The place before the counters whose counts can have changed since they were stored."""
    return Place(utcnow() - STILL_COUNTED)


def store_counts(after: Place, *, limit: int, actor: Actor) -> Place | None:
    """Store the counts of the next counters, and record ``limit.forecast`` for those that changed.

    Returns the place of the last counter; None if there are no more counters.
    """
    rows = STORE.all(**after._asdict(), limit=limit)
    changed = [row for row in rows if row.has_changed]
    if changed:
        _record_forecasts(changed, actor=actor)
    return Place(*rows[-1][:4]) if len(rows) == limit else None


def _record_forecasts(changed: Sequence[Any], *, actor: Actor) -> None:
    found = TAKE_FORECASTS.all(
        tenant_ids=[row.tenant_id for row in changed],
        features=[row.feature for row in changed],
        period_starts=[row.period_start for row in changed],
    )
    with writes() as w:
        for row in found:
            state = {"used": row.used, "limit": row.most}
            state |= {"pace_per_day": row.pace_per_day, "ends_at": row.ends_at}
            add_event(
                "limit.forecast",
                target_id=row.feature,
                tenant_id=row.tenant_id,
                change=Change({}, state),
                actor=actor,
                data={"feature": row.feature, **state},
                into=w,
            )
