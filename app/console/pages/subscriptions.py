"""Subscriptions: the provider's facts, the class of the status, the record of a cancellation."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form
from app.console.lists import DATES, Filter, list_rows, show_list
from app.console.pages.common import PROVIDERS, RECENT, recent_history, slug_of
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


@page("/subscriptions", also_of_tenant=True)
def list_subscriptions(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,status_class,billing")
    return show_list("subscriptions", "Subscriptions", listing, COLUMNS)


@page("/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>")
def show_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    path = f"{PATH}/{subscription_id}"
    subscription = api.get(path, include=INCLUDED).data
    title = subscription["bp_subscription_id"]
    return render(
        "subscription",
        title,
        subscription=subscription,
        provider=PROVIDERS.get(subscription["billing"]["bp_provider"], "The provider"),
        history=_timeline(subscription, recent_history(path)),
    )


def _timeline(subscription: Json, history: Json) -> Json:
    """The changes, with the provider's events where the person may read them; the newest first."""
    named = {"source": subscription["billing"]["bp_provider"], "limit": RECENT}
    if history is None or named["source"] is None:
        return history
    about = {"bp_subscription_id": subscription["bp_subscription_id"], "order": "-created_at"}
    events = api.find("/v1/webhooks/events", **named, **about)
    rows = [*history, *(events.data if events else ())]
    return sorted(rows, key=lambda row: datetime.fromisoformat(row["created_at"]), reverse=True)


@form_page("/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>/cancel")
def cancel_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    row = f"{PATH}/{subscription_id}"
    form = Form(
        "Record a cancellation",
        CANCELLATION,
        row=row,
        values={"at_period_end": True},
        intro=lambda: (
            "The cancellation is recorded here. The billing provider is not called."
            + _is_undone(row)
        ),
        submit="Record the cancellation",
        confirmation=partial(slug_of, tenant_id),
    )
    query = {"force": True} if current_session().is_platform else None
    return form.send("POST", "/cancel", query=query, done="The cancellation was recorded.")


def _is_undone(path: str) -> str:
    """A sentence about a subscription that its provider's events keep current."""
    is_managed = api.get(path, include="is_managed").data["is_managed"]
    return " Its next event, or the next comparison, can undo this." if is_managed else ""
