"""A limit of a tenant: what was used of it, and what is held."""

from __future__ import annotations

from uuid import UUID

from flask import url_for

from app.console import api
from app.console.blueprint import Shown, form_page
from app.console.charts import bars, day_bars, meter
from app.console.forms import Form
from app.core.json_text import Json

USAGE = "/v1/usage"
HOLDS = f"{USAGE}/holds"
SEATS = "seats"  # a limit of which nothing is consumed
PERIODS = 12
MOST_HOLDS = 20


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
        values["holds"] = api.get(HOLDS, **place, state="open", limit=MOST_HOLDS).body
    return values


@form_page("/tenants/<uuid:tenant_id>/flags/<key>/holds/<uuid:hold_id>/release")
def release_hold(tenant_id: UUID, key: str, hold_id: UUID) -> Shown:
    form = Form(
        "Release the hold",
        row=f"{HOLDS}/{hold_id}",
        intro="What it holds is free at once, and can no longer be settled.",
        is_dangerous=True,
        back=_page(tenant_id, key),
    )
    return form.send("DELETE", done="The hold was released.")


def _page(tenant_id: UUID, key: str) -> str:
    return url_for("console.show_flag", tenant_id=tenant_id, key=key)
