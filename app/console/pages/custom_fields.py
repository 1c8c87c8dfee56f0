"""Custom fields: define, order, archive and restore them; how far an index is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, url_for

from app.console import api
from app.console.access import set_notice, signed_in
from app.console.api import succeeded
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_tenant, recent_history

TYPES = choices(
    "text",
    "long_text",
    "integer",
    "decimal",
    "boolean",
    "date",
    "datetime",
    "email",
    "url",
    "phone",
    "select",
    "multi_select",
)
FILTERS = (
    Filter("entity_type", "Of"),
    Filter("field_type", "Type", TYPES),
    Filter("is_active", "State", [("true", "active"), ("false", "archived")]),
)
PATH = "/v1/custom-fields"


class Options(Field):
    """The options of a select, one on each line."""

    def read(self, form: Any) -> Any:
        """The lines; None for no options."""
        lines = [line.strip() for line in form.get(self.name, "").splitlines()]
        return [line for line in lines if line] or None

    def shown(self, value: Any) -> Any:
        """One option on each line."""
        return "\n".join(value or ())


CHANGEABLE = (
    Field("label", "Label", is_required=True),
    Options(
        "options", "Options", "textarea", help="One on each line, for select and multi select."
    ),
    Field("is_required", "A value is required", "boolean"),
    Field("is_searchable", "Users and tenants can be found by it", "boolean"),
)
DEFINITION = (
    Field(
        "entity_type",
        "Of",
        help="user, tenant, or a type of your own.",
        is_required=True,
    ),
    Field("field_key", "Key", help="The key in meta_data. It cannot be changed.", is_required=True),
    Field("field_type", "Type", "select", choices=TYPES, is_required=True),
    *CHANGEABLE,
)


@console.get("/tenants/<uuid:tenant_id>/custom-fields")
@signed_in
def list_fields(tenant_id: UUID) -> str:
    """List a tenant's custom fields in their order."""
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="index", limit=100)
    listing.rows = sorted(
        listing.rows, key=lambda row: (row["entity_type"], row["sort_order"], row["created_at"])
    )
    return render_template(
        "console/custom_fields.html",
        title="Custom fields",
        tenant=get_tenant(tenant_id),
        listing=listing,
    )


@console.route("/tenants/<uuid:tenant_id>/custom-fields/new", methods=["GET", "POST"])
@signed_in
def create_field(tenant_id: UUID) -> Any:
    """Define a custom field."""
    form = Form(
        "New custom field",
        DEFINITION,
        values={"entity_type": "user"},
        submit="Create",
        back=_list(tenant_id),
        context={"tenant": get_tenant(tenant_id)},
    )
    return form.run(
        lambda values, _: api.call("POST", PATH, query={"tenant_id": tenant_id}, body=values),
        done="The custom field was created.",
        to=_list(tenant_id),
    )


@console.get("/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>")
@signed_in
def show_field(tenant_id: UUID, field_id: UUID) -> str:
    """Show a custom field, and how far its index is."""
    path = f"{PATH}/{field_id}"
    return render_template(
        "console/custom_field.html",
        title=(field := api.get(path).data)["label"],
        tenant=get_tenant(tenant_id),
        field=field,
        index=api.get(f"{path}/index").data,
        history=recent_history(path),
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/edit", methods=["GET", "POST"]
)
@signed_in
def edit_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Change a custom field."""
    return _form(
        tenant_id,
        field_id,
        "Edit the custom field",
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{field_id}", body=values, if_match=version
        ),
        fields=CHANGEABLE,
        done="The custom field was changed.",
        changed_only=True,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/archive", methods=["GET", "POST"]
)
@signed_in
def archive_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Archive a custom field."""
    return _form(
        tenant_id,
        field_id,
        "Archive the custom field",
        lambda _, version: api.call("POST", f"{PATH}/{field_id}/archive", if_match=version),
        intro="Its values are not checked or searched any more. They remain stored.",
        submit="Archive",
        is_dangerous=True,
        done="The custom field is archived.",
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/restore", methods=["GET", "POST"]
)
@signed_in
def restore_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Restore an archived custom field."""
    return _form(
        tenant_id,
        field_id,
        "Restore the custom field",
        lambda _, version: api.call(
            "POST", f"{PATH}/{field_id}/restore", body={"confirm": True}, if_match=version
        ),
        intro="New values are checked again. Where the field is searchable, its index is built.",
        submit="Restore",
        done="The custom field is active again.",
    )


@console.post("/tenants/<uuid:tenant_id>/custom-fields/order")
@signed_in
def order_fields(tenant_id: UUID) -> Any:
    """Move a field up or down among those of its entity type."""
    entity_type, moved = request.form.get("entity_type", ""), request.form.get("field_id", "")
    rows = api.get(PATH, tenant_id=tenant_id, entity_type=entity_type, limit=100).data
    ids = [row["id"] for row in sorted(rows, key=lambda r: (r["sort_order"], r["created_at"]))]
    if moved in ids:
        place = ids.index(moved)
        other = place + (-1 if request.form.get("to") == "up" else 1)
        if 0 <= other < len(ids):
            ids[place], ids[other] = ids[other], ids[place]
            body = {"entity_type": entity_type, "field_ids": ids}
            query = {"tenant_id": tenant_id}
            succeeded(api.call("POST", f"{PATH}/reorder", query=query, body=body))
            return set_notice(redirect(_list(tenant_id), 303), "The order was changed.")
    return redirect(_list(tenant_id), 303)


def _form(
    tenant_id: UUID,
    field_id: UUID,
    title: str,
    send: Any,
    *,
    done: str,
    changed_only: bool = False,
    **options: Any,
) -> Any:
    found = api.get(f"{PATH}/{field_id}")
    page = url_for("console.show_field", tenant_id=tenant_id, field_id=field_id)
    form = Form(
        title,
        values=found.data,
        version=found.etag,
        back=page,
        context={"tenant": get_tenant(tenant_id)},
        **options,
    )
    return form.run(send, done=done, to=page, changed_only=changed_only)


def _list(tenant_id: UUID) -> str:
    return url_for("console.list_fields", tenant_id=tenant_id)
