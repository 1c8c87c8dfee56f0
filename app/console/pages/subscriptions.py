"""Subscriptions: the provider's facts, the class of the status, the record of a cancellation."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import row_form
from app.console.lists import DATES, Filter, list_page
from app.console.pages.common import PROVIDERS, RECENT, recent_history, tenant_slug
from app.core.json_text import Json

CLASSES = [("live", "active"), *choices("past_due", "paused", "pending", "ended", "unknown")]
FILTERS = (
    Filter("status_class", "State", CLASSES),
    Filter("bp_subscription_id", "Subscription id"),
    Filter("bp_customer_id", "Customer id", is_rare=True),
    *DATES,
)
COLUMNS = (
    "id bp_subscription_id tenant.name plan_name bp_status per_cycle_billing_amount billing.currency"
    " billing.trial_end start_date"
)
CANCELLATION = (
    Field("at_period_end", "It ends with the period that is paid for", "boolean"),
    Field("reason", "Reason", "textarea", is_nullable=True),
)
INCLUDED = "tenant,cancellation,status_class,source_timestamp,billing,is_managed,items"
PATH = "/v1/billing/subscriptions"
SUBSCRIPTION = "/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>"

LIST = ("/subscriptions", "subscriptions", "Subscriptions", PATH, COLUMNS, FILTERS)
list_page(*LIST, also_of_tenant=True, include="tenant,status_class,billing")


@page(SUBSCRIPTION)
def show_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    path = f"{PATH}/{subscription_id}"
    one = api.get(path, include=INCLUDED).data
    provider = PROVIDERS.get(one["billing"]["bp_provider"], "The provider")
    values = {"subscription": one, "provider": provider}
    history = _timeline(one, recent_history(path))
    return render("subscription", one["bp_subscription_id"], **values, history=history)


def _timeline(subscription: Json, history: Json) -> Json:
    """The changes, with the provider's events where the person may read them; the newest first."""
    named = {"source": subscription["billing"]["bp_provider"], "limit": RECENT}
    if history is None or named["source"] is None:
        return history
    about = {"bp_subscription_id": subscription["bp_subscription_id"], "order": "-created_at"}
    events = api.find("/v1/webhooks/events", **named, **about)
    rows = [*history, *(events.data if events else ())]
    return sorted(rows, key=lambda row: datetime.fromisoformat(row["created_at"]), reverse=True)


@form_page(f"{SUBSCRIPTION}/cancel")
def cancel_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    def intro() -> str:
        is_managed = api.get(form.row, include="is_managed").data["is_managed"]
        undone = " Its next event, or the next comparison, can undo this." if is_managed else ""
        return f"The cancellation is recorded here. The billing provider is not called.{undone}"

    title = "Record a cancellation"
    form = row_form(PATH, subscription_id, title, intro, CANCELLATION, confirmation=tenant_slug)
    form.values, form.submit = {"at_period_end": True}, "Record the cancellation"
    query = {"force": True} if current_session().is_platform else None
    return form.send("POST", "/cancel", query=query, done="The cancellation was recorded.")
