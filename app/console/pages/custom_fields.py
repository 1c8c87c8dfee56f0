"""Custom fields: define, order, archive and restore them; how far an index is."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from uuid import UUID

from flask import redirect, request, url_for
from werkzeug.exceptions import BadRequest

from app.console import api
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, Lines, choices
from app.console.forms import Form, row_form
from app.console.lists import Filter, filter_values, list_rows, show_list
from app.console.next_page import Notice, set_notice
from app.console.pages.common import recent_history
from app.core.json_text import Json

TYPES = choices(
    *("text", "long_text", "integer", "decimal", "boolean", "date", "datetime", "email", "url"),
    *("phone", "select", "multi_select"),
)
FILTERS = (
    Filter("entity_type", "Applies to"),
    Filter("field_type", "Type", TYPES),
    Filter("is_active", "State", [("true", "active"), ("false", "archived")]),
)
COLUMNS = "id label entity_type field_key field_type is_required is_searchable is_active"
PATH, PLACE = "/v1/custom-fields", "/tenants/<uuid:tenant_id>/custom-fields"
FIELD = f"{PLACE}/<uuid:field_id>"
MOST = 500  # fields that are sorted here
OPTIONS = "One on each line, for select and multi select."
CHANGEABLE = (
    Field("label", "Label", is_required=True),
    Lines("options", "Options", "textarea", help=OPTIONS, is_nullable=True),
    Field("is_required", "A value is required", "boolean"),
    Field("is_searchable", "Users and tenants can be found by it", "boolean"),
)
APPLIES_TO = "user, tenant, or a type of your own."
KEY = "The key in meta_data: small letters, digits and _. It cannot be changed."
DEFINITION = (
    Field("entity_type", "Applies to", help=APPLIES_TO, is_required=True),
    Field("field_key", "Key", help=KEY, is_required=True),
    Field("field_type", "Type", "select", choices=TYPES, is_required=True),
    *CHANGEABLE,
)

_form = partial(row_form, PATH, name=itemgetter("label"))


@page(PLACE)
def list_fields(tenant_id: UUID) -> Shown:
    listing = list_rows(PATH, FILTERS, most=MOST, tenant_id=tenant_id, include="index")
    listing.rows.sort(key=lambda row: (row["entity_type"], *_place(row)))
    return show_list("custom_fields", "Custom fields", listing, COLUMNS)


@form_page(f"{PLACE}/new")
def create_field(tenant_id: UUID) -> Shown:
    form = Form("New custom field", DEFINITION, values={"entity_type": "user"}, submit="Create")
    query = {"tenant_id": tenant_id}
    return form.send("POST", PATH, query=query, done="The custom field was created.")


@page(FIELD)
def show_field(tenant_id: UUID, field_id: UUID) -> Shown:
    path = f"{PATH}/{field_id}"
    field = api.get(path).data
    index, history = api.get(f"{path}/index").data, recent_history(path)
    return render("custom_field", field["label"], field=field, index=index, history=history)


@form_page(f"{FIELD}/edit")
def edit_field(tenant_id: UUID, field_id: UUID) -> Shown:
    form = _form(field_id, "Edit the custom field {}", fields=CHANGEABLE)
    return form.send("PATCH", done="The custom field was changed.", changed_only=True)


@form_page(f"{FIELD}/archive")
def archive_field(tenant_id: UUID, field_id: UUID) -> Shown:
    intro = "Its values are not checked or searched any more. They remain stored."
    form = _form(field_id, "Archive the custom field {}", intro, is_dangerous=True)
    return form.send("POST", "/archive", done="The custom field is archived.", undo="restore")


@form_page(f"{FIELD}/restore")
def restore_field(tenant_id: UUID, field_id: UUID) -> Shown:
    intro = "New values are checked again. Where the field is searchable, its index is built."
    form = _form(field_id, "Restore the custom field {}", intro)
    done = "The custom field is active again."
    return form.send("POST", "/restore", body={"confirm": True}, done=done, undo="archive")


@form_page(f"{FIELD}/delete")
def delete_field(tenant_id: UUID, field_id: UUID) -> Shown:
    intro = (
        "Its definition and its index are deleted. The values remain in meta_data, without a label."
        " This cannot be undone."
    )
    key = api.get_once(f"{PATH}/{field_id}").data["field_key"]
    form = _form(field_id, "Delete the custom field {}", intro, confirmation=key)
    return form.send("DELETE", done="The custom field was deleted.", to=form.above)


@page(f"{PLACE}/order", methods=("POST",))
def order_fields(tenant_id: UUID) -> Shown:
    """Move a field to the place before another field of its entity type, or to the end.

    ``move`` contains the ids of both; without the second the field moves to the end.
    """
    moved, _, before = request.form.get("move", "").partition(" ")
    try:
        path = f"{PATH}/{UUID(moved)}"
    except ValueError:
        raise BadRequest from None
    field = api.get(path).data
    entity_type, field_id = field["entity_type"], field["id"]
    rows = api.get_all(PATH, tenant_id=tenant_id, entity_type=entity_type)
    sorted_ids = [row["id"] for row in sorted(rows, key=_place)]
    ids = [each for each in sorted_ids if each != field_id]
    filters: dict[str, Json] = {**filter_values(FILTERS)}
    shown = redirect(url_for("console.list_fields", tenant_id=tenant_id, **filters), 303)
    if before and before not in ids:
        return set_notice(shown, "Somebody else has changed the fields meanwhile. Nothing moved.")
    place = ids.index(before) if before else len(ids)
    ids.insert(place, field_id)
    body = {"entity_type": entity_type, "field_ids": ids}
    api.succeeded(api.call("POST", f"{PATH}/reorder", query={"tenant_id": tenant_id}, body=body))
    told = f"{field['label']} is number {place + 1} of {len(ids)} now."
    next_id = "".join(sorted_ids[sorted_ids.index(field_id) + 1 :][:1])
    return set_notice(shown, Notice(told, request.path, {"move": [f"{field_id} {next_id}"]}))


def _place(field: Json) -> tuple[Json, ...]:
    """The sort key of a field among those of its entity type."""
    return field["sort_order"], field["created_at"], field["id"]
