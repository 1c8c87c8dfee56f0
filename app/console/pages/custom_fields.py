"""Custom fields: define, order, archive and restore them; how far an index is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, url_for
from werkzeug.exceptions import BadRequest

from app.console import api
from app.console.access import set_notice, signed_in
from app.console.blueprint import console
from app.console.forms import Field, Form, choices
from app.console.lists import Filter, filter_values, list_all
from app.console.pages.common import get_row, get_tenant, recent_history, row_form

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
    Filter("entity_type", "Applies to"),
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
        "Applies to",
        help="user, tenant, or a type of your own.",
        is_required=True,
    ),
    Field(
        "field_key",
        "Key",
        help="The key in meta_data: small letters, digits and _. It cannot be changed.",
        is_required=True,
    ),
    Field("field_type", "Type", "select", choices=TYPES, is_required=True),
    *CHANGEABLE,
)


@console.get("/tenants/<uuid:tenant_id>/custom-fields")
@signed_in
def list_fields(tenant_id: UUID) -> str:
    """List a tenant's custom fields in their order."""
    listing = list_all(PATH, FILTERS, tenant_id=tenant_id, include="index")
    listing.rows.sort(key=lambda row: (row["entity_type"], *_place(row)))
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
        title=(field := get_row(tenant_id, path).data)["label"],
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
    form = _form(tenant_id, field_id, "Edit the custom field", fields=CHANGEABLE)
    return form.run(
        lambda values, version: api.call(
            "PATCH", f"{PATH}/{field_id}", body=values, if_match=version
        ),
        done="The custom field was changed.",
        to=form.back,
        changed_only=True,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/archive", methods=["GET", "POST"]
)
@signed_in
def archive_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Archive a custom field."""
    form = _form(
        tenant_id,
        field_id,
        "Archive the custom field",
        intro="Its values are not checked or searched any more. They remain stored.",
        submit="Archive",
        is_dangerous=True,
    )
    return form.run(
        lambda _, version: api.call("POST", f"{PATH}/{field_id}/archive", if_match=version),
        done="The custom field is archived.",
        to=form.back,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/restore", methods=["GET", "POST"]
)
@signed_in
def restore_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Restore an archived custom field."""
    form = _form(
        tenant_id,
        field_id,
        "Restore the custom field",
        intro="New values are checked again. Where the field is searchable, its index is built.",
        submit="Restore",
    )
    return form.run(
        lambda _, version: api.call(
            "POST", f"{PATH}/{field_id}/restore", body={"confirm": True}, if_match=version
        ),
        done="The custom field is active again.",
        to=form.back,
    )


@console.route(
    "/tenants/<uuid:tenant_id>/custom-fields/<uuid:field_id>/delete", methods=["GET", "POST"]
)
@signed_in
def delete_field(tenant_id: UUID, field_id: UUID) -> Any:
    """Delete an archived custom field."""
    form = _form(
        tenant_id,
        field_id,
        "Delete the custom field",
        intro="Its definition and its index are deleted. The values remain in meta_data, without"
        " a label. This cannot be undone.",
        submit="Delete",
        is_dangerous=True,
    )
    form.confirmation = form.values["field_key"]
    return form.run(
        lambda _, version: api.call("DELETE", f"{PATH}/{field_id}", if_match=version),
        done="The custom field was deleted.",
        to=_list(tenant_id),
    )


@console.post("/tenants/<uuid:tenant_id>/custom-fields/order")
@signed_in
def order_fields(tenant_id: UUID) -> Any:
    """Move a field to the place before another one of its entity type, or to the end.

    ``move`` has the ids of both; without the second one the field moves to the end.
    """
    moved, _, before = request.form.get("move", "").partition(" ")
    try:
        path = f"{PATH}/{UUID(moved)}"
    except ValueError:
        raise BadRequest from None
    field = get_row(tenant_id, path).data
    entity_type, field_id = field["entity_type"], field["id"]
    rows = api.get_all(PATH, tenant_id=tenant_id, entity_type=entity_type)
    ids = [row["id"] for row in sorted(rows, key=_place) if row["id"] != field_id]
    page = redirect(_list(tenant_id, **filter_values(FILTERS)), 303)
    if before and before not in ids:
        return set_notice(page, "Somebody else has changed the fields meanwhile. Nothing moved.")
    place = ids.index(before) if before else len(ids)
    ids.insert(place, field_id)
    body = {"entity_type": entity_type, "field_ids": ids}
    api.succeeded(api.call("POST", f"{PATH}/reorder", query={"tenant_id": tenant_id}, body=body))
    return set_notice(page, f"{field['label']} is number {place + 1} of {len(ids)} now.")


def _place(field: Any) -> tuple[Any, ...]:
    """What a field is sorted by, among those of its entity type."""
    return field["sort_order"], field["created_at"], field["id"]


def _form(tenant_id: UUID, field_id: UUID, title: str, **options: Any) -> Form:
    page = url_for("console.show_field", tenant_id=tenant_id, field_id=field_id)
    return row_form(title, tenant_id, f"{PATH}/{field_id}", back=page, **options)


def _list(tenant_id: UUID, **filters: Any) -> str:
    return url_for("console.list_fields", tenant_id=tenant_id, **filters)
