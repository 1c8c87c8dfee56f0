"""Subscriptions: the provider's facts, the class of the status, the record of a cancellation."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.forms import Field, Form, choices
from app.console.lists import DATES, Filter, list_rows, show_list
from app.console.pages.common import recent_history, slug_of

CLASSES = choices("pending", "live", "past_due", "paused", "ended", "unknown")
FILTERS = (
    Filter("status_class", "Class", CLASSES),
    Filter("bp_subscription_id", "Subscription id"),
    Filter("bp_customer_id", "Customer id", is_rare=True),
    *DATES,
)
COLUMNS = (
    "id bp_subscription_id tenant.name plan_name bp_status per_cycle_billing_amount start_date"
)
CANCELLATION = (
    Field("at_period_end", "It ends with the period that is paid for", "boolean"),
    Field("reason", "Reason", "textarea", is_nullable=True),
)
INCLUDED = "tenant,cancellation,status_class,source_timestamp"
PATH = "/v1/billing/subscriptions"


@page("/subscriptions", also_of_tenant=True)
def list_subscriptions(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,status_class")
    return show_list("subscriptions", "Subscriptions", listing, COLUMNS)


@page("/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>")
def show_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    path = f"{PATH}/{subscription_id}"
    subscription = api.get(path, include=INCLUDED).data
    title = subscription["bp_subscription_id"]
    history = recent_history(path)
    return render("subscription", title, subscription=subscription, history=history)


@form_page("/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>/cancel")
def cancel_subscription(tenant_id: UUID, subscription_id: UUID) -> Shown:
    form = Form(
        "Record a cancellation",
        CANCELLATION,
        row=f"{PATH}/{subscription_id}",
        values={"at_period_end": True},
        intro="The cancellation is recorded here. The billing provider is not called.",
        submit="Record the cancellation",
        confirmation=partial(slug_of, tenant_id),
    )
    return form.send("POST", "/cancel", done="The cancellation was recorded.")
