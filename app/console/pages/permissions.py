"""Permissions of the product, in addition to those of this service."""

from __future__ import annotations

from urllib.parse import quote

from flask import request

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field
from app.console.forms import Form, row_form

PERMISSIONS, PLACE = "/v1/permissions", "/roles/permissions"
KEY = Field("key", "Key", help="Such as invoices:approve. It cannot be changed.", is_required=True)
FLAG = "It is held only while this flag is on for the tenant."
FIELDS = (
    Field("description", "Description"),
    Field("group", "Group", help="Such as invoices."),
    Field("requires_flag", "Requires the flag", help=FLAG, is_nullable=True),
    Field("requires_limit", "Requires something left of the limit", is_nullable=True),
)


@page(PLACE)
def list_permissions() -> Shown:
    permissions = api.get(PERMISSIONS, kind="product").data
    return render("permissions", "Permissions of the product", permissions=permissions)


@form_page(f"{PLACE}/new")
def create_permission() -> Shown:
    form = Form("New permission", (KEY, *FIELDS), submit="Create")
    key = request.form.get("key", "").strip()
    path = f"{PERMISSIONS}/{quote(key, safe='')}"
    if request.method == "POST" and (not key or api.find(path)):
        form.errors["key"] = ["There is such a permission." if key else "Field required"]
    body = lambda values: {name: one for name, one in values.items() if name != "key"}  # noqa: E731
    return form.send("PUT", path, body=body, done="The permission was created.")


@form_page(f"{PLACE}/<key>/edit")
def edit_permission(key: str) -> Shown:
    form = row_form(PERMISSIONS, quote(key, safe=""), f"Edit {key}", fields=FIELDS)
    return form.send("PUT", done="The permission was changed.")


@form_page(f"{PLACE}/<key>/delete")
def delete_permission(key: str) -> Shown:
    name, intro = quote(key, safe=""), "It can be deleted once no role has it."
    form = row_form(PERMISSIONS, name, f"Delete {key}", intro, confirmation=key)
    return form.send("DELETE", done="The permission was deleted.")
