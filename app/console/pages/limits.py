"""A limit of a tenant: what was used of it, what is held, and its credits."""

from __future__ import annotations

from uuid import UUID

from app.console import api
from app.console.blueprint import Shown, form_page, page
from app.console.charts import bars, day_bars, meter
from app.console.fields import Field, choices, moment_field
from app.console.forms import Form, row_form
from app.console.lists import list_rows, show_list
from app.core.json_text import Json

USAGE = "/v1/usage"
HOLDS = f"{USAGE}/holds"
CREDITS = "/v1/credits"
GRANTS = f"{CREDITS}/grants"
SEATS = "seats"  # a limit of which nothing is consumed
PERIODS = 12
FLAG = "/tenants/<uuid:tenant_id>/flags/<key>"
MOST_HOLDS = 20
SOURCES = choices("purchase", "promotion", "refund")
PRIORITY = "The lowest is used first, then what ends first. Empty: 100."
GRANT = (
    Field("amount", "Credits", "integer", is_required=True),
    Field("source", "Source", "select", choices=SOURCES, is_required=True),
    moment_field("starts_at", "Starts at", "now"),
    moment_field("expires_at", "Expires at", "never"),
    Field("priority", "Priority", "integer", help=PRIORITY),
    Field("reference", "Reference", help="Such as the number of an invoice."),
)
REVOKE = (
    Field("amount", "Credits", "integer", help="Empty: all that is left."),
    Field("reason", "Reason", help="The ledger shows it.", is_required=True),
)
ENTRIES = "number at kind amount remaining balance lot_id hold_id reason"


def limit_values(tenant_id: UUID, key: str) -> dict[str, Json]:
    """The values that the page of a limit shows; none if the person may not read usage."""
    place = {"tenant_id": tenant_id, "feature": key}
    usage = api.find(USAGE, **place, limit=PERIODS)
    if usage is None:
        return {}
    values: dict[str, Json] = {"usage": usage.data, "chart": bars(usage.data), "meter": meter}
    if key != SEATS:
        by_day = api.get(f"{USAGE}/days", **place).data
        values |= {"by_day": by_day, "day_chart": day_bars(by_day["days"], by_day["forecast"])}
        values["holds"] = api.get(HOLDS, **place, state="open", limit=MOST_HOLDS).body
        values["credits"] = next(iter(api.get(CREDITS, **place).data), None)
    return values


@form_page(f"{FLAG}/holds/<uuid:hold_id>/release")
def release_hold(tenant_id: UUID, key: str, hold_id: UUID) -> Shown:
    intro = "What it holds is free at once, and can no longer be settled."
    form = row_form(HOLDS, hold_id, "Release the hold", intro, is_dangerous=True)
    return form.send("DELETE", done="The hold was released.")


@page(f"{FLAG}/credits")
def list_credit_entries(tenant_id: UUID, key: str) -> Shown:
    """The ledger of a balance."""
    listing = list_rows(f"{CREDITS}/entries", tenant_id=tenant_id, feature=key, order=None)
    return show_list("credit_entries", f"Ledger of {key}", listing, ENTRIES)


@form_page(f"{FLAG}/credits/grant")
def grant_credits(tenant_id: UUID, key: str) -> Shown:
    form = Form(f"Grant {key}", GRANT, submit="Grant")
    form.back = form.above

    def body(values: dict[str, Json]) -> Json:
        given = {name: value for name, value in values.items() if value not in (None, "")}
        return {"tenant_id": str(tenant_id), "feature": key, **given}

    return form.send("POST", GRANTS, body=body, done="The credits were granted.")


@form_page(f"{FLAG}/credits/<uuid:lot_id>/revoke")
def revoke_credits(tenant_id: UUID, key: str, lot_id: UUID) -> Shown:
    lot = api.get_once(f"{GRANTS}/{lot_id}").data
    intro = f"{lot['remaining']:,} of {lot['granted']:,} are left. What was used stays used."
    form = Form(f"Revoke {key}", REVOKE, intro=intro, submit="Revoke", is_dangerous=True)
    form.back = form.above
    return form.send("POST", f"{GRANTS}/{lot_id}/revoke", done=_revoked)


def _revoked(answer: api.Answer) -> str:
    return (
        f"{answer.data['revoked']:,} credits were revoked; {answer.data['spent']:,} had been used."
    )
