"""Subscriptions: the provider's facts, the class of the status, the record of a cancellation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Field, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_row, get_tenant, recent_history, row_form

CLASSES = choices("pending", "live", "past_due", "paused", "ended", "unknown")
FILTERS = (
    Filter("status_class", "Class", CLASSES),
    Filter("bp_subscription_id", "Subscription id"),
    Filter("bp_customer_id", "Customer id"),
)
CANCELLATION = (
    Field("at_period_end", "It ends with the period that is paid for", "boolean"),
    Field("reason", "Reason", "textarea", is_nullable=True),
)
INCLUDED = "tenant,cancellation,status_class,source_timestamp"
PATH = "/v1/billing/subscriptions"


@console.get("/subscriptions")
@console.get("/tenants/<uuid:tenant_id>/subscriptions")
@signed_in
def list_subscriptions(tenant_id: UUID | None = None) -> str:
    """List subscriptions, of one tenant or of all."""
    return render_template(
        "console/subscriptions.html",
        title="Subscriptions",
        tenant=get_tenant(tenant_id),
        listing=list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,status_class"),
    )


@console.get("/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>")
@signed_in
def show_subscription(tenant_id: UUID, subscription_id: UUID) -> str:
    """Show a subscription."""
    tenant = get_tenant(tenant_id)
    path = f"{PATH}/{subscription_id}"
    subscription = get_row(tenant_id, path, include=INCLUDED).data
    return render_template(
        "console/subscription.html",
        title=subscription["bp_subscription_id"],
        tenant=tenant,
        subscription=subscription,
        history=recent_history(path),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/subscriptions/<uuid:subscription_id>/cancel",
    methods=["GET", "POST"],
)
@signed_in
def cancel_subscription(tenant_id: UUID, subscription_id: UUID) -> Any:
    """Record a cancellation."""
    path = f"{PATH}/{subscription_id}"
    page = url_for(
        "console.show_subscription", tenant_id=tenant_id, subscription_id=subscription_id
    )
    form = row_form(
        "Record a cancellation",
        tenant_id,
        path,
        back=page,
        fields=CANCELLATION,
        values={"at_period_end": True},
        intro="The cancellation is recorded here. The billing provider is not called.",
        submit="Record the cancellation",
        is_dangerous=True,
    )
    form.confirmation = form.context["tenant"]["slug"]
    return form.run(
        lambda values, version: api.call("POST", f"{path}/cancel", body=values, if_match=version),
        done="The cancellation was recorded.",
        to=page,
    )
