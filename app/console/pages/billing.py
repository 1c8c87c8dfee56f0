"""Billing: the providers, what their prices give, and the tenants of their customers."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import request
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field
from app.console.forms import Form
from app.console.lists import Filter, list_page, plans
from app.console.pages.common import PROVIDERS, TENANT
from app.core.json_text import Json

PATH = "/v1/billing"
PRICES, CUSTOMERS = f"{PATH}/prices", f"{PATH}/customers"
NAMES = list(PROVIDERS.items())
PROVIDER = Field("provider", "Provider", "select", choices=NAMES, is_required=True)
LIMIT = "Such as seats: the limit then equals the quantity of the item. Empty: none."
ORDER = "Of several prices of a subscription, the lowest number decides the plan."
GIVEN = (
    Field("plan_name", "Plan", "select", choices=plans, is_required=True),
    Field("limit_key", "Limit that takes the quantity", help=LIMIT, is_nullable=True),
    Field("sort_order", "Order", "integer", help=ORDER),
)
NAMED = (
    PROVIDER,
    Field("price_id", "Price id", help="The provider's id of the price.", is_nullable=True),
    Field("lookup_key", "Lookup key", help="Instead of the id.", is_nullable=True),
)
CUSTOMER = (
    PROVIDER,
    Field("customer_id", "Customer id", help="The provider's id.", is_required=True),
    TENANT,
)
FILTERS = (
    Filter("provider", "Provider", NAMES),
    Filter("customer_id", "Customer id"),
    Filter("tenant_id", "Tenant", kind="row", types="tenant"),
)
DONE = "The price was saved. A job changes its subscriptions."


@page("/billing")
def show_billing() -> Shown:
    """Show the providers, the events that wait for a tenant, and what prices give."""
    providers, waiting = api.get(f"{PATH}/providers").data, api.get(f"{CUSTOMERS}/waiting").data
    prices = api.get_all(PRICES)
    return render("billing", "Billing", providers=providers, waiting=waiting, prices=prices)


@form_page("/billing/<provider>/compare")
def compare_billing(provider: str) -> Shown:
    intro = "All subscriptions are compared with the provider's, and what differs is repaired."
    form = Form("Compare now", intro=intro)
    path = f"{PATH}/providers/{quote(provider, safe='')}/reconcile"
    return form.send("POST", path, done="The comparison has begun.")


@form_page("/billing/prices/new")
def create_price() -> Shown:
    form = Form("New price", (*NAMED, *GIVEN), template="price_form")
    form.values = {"sort_order": 0}
    return form.send("PUT", PRICES, dry_run="dry_run", done=DONE)


@form_page("/billing/prices/<uuid:price_id>/edit")
def edit_price(price_id: UUID) -> Shown:
    price = _price(price_id)
    title = f"Edit the price {price['price_id'] or price['lookup_key']}"
    form = Form(title, GIVEN, values=price, template="price_form")
    named = {one.name: price[one.name] for one in NAMED}
    undo = f"prices/{price_id}/edit"
    return form.send(
        "PUT", PRICES, body=lambda values: named | values, dry_run="dry_run", done=DONE, undo=undo
    )


@form_page("/billing/prices/<uuid:price_id>/delete")
def delete_price(price_id: UUID) -> Shown:
    intro = (
        "Its subscriptions get the plan that they have without it: that of another price, or the"
        " one that is named as the price."
    )
    form = Form("Delete the price", values=_price(price_id), intro=intro, is_dangerous=True)
    form.undone_by = (*NAMED, *GIVEN)
    path, done = f"{PRICES}/{price_id}", "The price was deleted."
    return form.send("DELETE", path, done=done, undo="prices/new")


COLUMNS = "provider customer_id tenant.name is_manual created_at"
LIST = ("billing_customers", "Customers at providers", CUSTOMERS, COLUMNS, FILTERS)
list_page("/billing/customers", *LIST, include="tenant")


@form_page("/billing/customers/new")
def create_billing_customer() -> Shown:
    intro = (
        "Its waiting events are applied at once. It counts where the provider's metadata names no"
        " tenant; known subscriptions stay with theirs."
    )
    form = Form("Choose the tenant of a customer", CUSTOMER, intro=intro)
    form.values = {one.name: request.args.get(one.name) for one in CUSTOMER}
    form.back = form.above if request.args else form.back
    typed = (request.form.get(one.name, "").strip() for one in CUSTOMER[:2])
    path = "/".join((CUSTOMERS, *(quote(text, safe="") for text in typed)))
    body = lambda given: {"tenant_id": given["tenant_id"]}  # noqa: E731
    return form.send("PUT", path, body=body, done="The customer has its tenant.")


@form_page("/billing/customers/<provider>/<customer_id>/delete")
def delete_billing_customer(provider: str, customer_id: str) -> Shown:
    intro = "New subscriptions of this customer wait for a tenant. Known ones stay."
    form = Form(f"Forget the tenant of {customer_id}", intro=intro, is_dangerous=True)
    path = "/".join((CUSTOMERS, quote(provider, safe=""), quote(customer_id, safe="")))
    return form.send("DELETE", path, done="The customer has no tenant any more.")


def _price(price_id: UUID) -> Json:
    """A price; raises NotFound."""
    for price in api.get_all(PRICES):
        if price["id"] == str(price_id):
            return price
    raise NotFound
