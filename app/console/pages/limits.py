"""A limit of a tenant: what was used of it."""

from __future__ import annotations

from uuid import UUID

from app.console import api
from app.console.charts import bars, day_bars, meter
from app.core.json_text import Json

USAGE = "/v1/usage"
SEATS = "seats"  # a limit of which nothing is consumed
PERIODS = 12


def limit_values(tenant_id: UUID, key: str) -> dict[str, Json]:
    """What the page of a limit shows; nothing where the person may not read usage."""
    place = {"tenant_id": tenant_id, "feature": key}
    usage = api.find(USAGE, **place, limit=PERIODS)
    if usage is None:
        return {}
    values: dict[str, Json] = {"usage": usage.data, "chart": bars(usage.data), "meter": meter}
    if key != SEATS:
        by_day = api.get(f"{USAGE}/days", **place).data
        values |= {"by_day": by_day, "day_chart": day_bars(by_day["days"], by_day["forecast"])}
    return values
