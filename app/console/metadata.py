"""Forms of metadata, made from the JSON Schema of the custom fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from app.console import api
from app.console.api import Answer
from app.console.blueprint import Shown
from app.console.fields import BooleanField, Field
from app.console.forms import Form
from app.core.json_text import Json

PATH = "/v1/custom-fields/json-schema"
KINDS = {
    "text": "text",
    "long_text": "textarea",
    "integer": "integer",
    "decimal": "number",
    "boolean": "select",
    "date": "date",
    "datetime": "datetime-local",
    "email": "email",
    "url": "url",
    "phone": "tel",
    "select": "select",
    "multi_select": "checks",
}
"""The input of each type of field. A boolean can be unset, so it is a menu and no box."""
BOOLEAN = [("true", "yes"), ("false", "no")]
HELP = {"phone": "With the country code, such as +4930901820.", "datetime": "In UTC."}


def metadata_form(
    tenant_id: UUID, entity_type: str, found: Answer, name: Callable[[Json], str]
) -> Form:
    """The form of the metadata of a row, with an input for each custom field in their order."""
    schema = api.get(PATH, tenant_id=tenant_id, entity_type=entity_type).data
    fields = [
        _field(key, described, is_required=key in schema["required"])
        for key, described in schema["properties"].items()
    ]
    return Form(
        "Edit the metadata of {}",
        fields,
        name=name,
        values=found.data["meta_data"],
        version=found.etag,
        intro="" if fields else f"This tenant has no custom fields of the type {entity_type}.",
    )


def send_metadata(form: Form, path: str) -> Shown:
    """Send what was changed as a merge patch (RFC 7396): null removes a value."""

    def body(values: Mapping[str, Json]) -> Json:
        patches = {name: None if value in ("", []) else value for name, value in values.items()}
        return {"patches": patches}

    done = "The metadata was changed."
    return form.send("PATCH", path, body=body, done=done, changed_only=True)


def metadata_facts(
    tenant_id: UUID, entity_type: str, values: Mapping[str, Json]
) -> list[tuple[str, Json]]:
    """The label and the value of each custom field, then the stored keys that have no field."""
    found = api.find(PATH, tenant_id=tenant_id, entity_type=entity_type)
    fields = found.data["properties"] if found else {}
    known = [(each["title"], values.get(key)) for key, each in fields.items()]
    return known + [(key, value) for key, value in values.items() if key not in fields]


def _field(key: str, described: Mapping[str, Json], *, is_required: bool) -> Field:
    field_type = described.get("x-field-type", "text")
    options = described.get("enum") or described.get("items", {}).get("enum") or ()
    kind = KINDS.get(field_type, "text")
    return (BooleanField if field_type == "boolean" else Field)(
        key,
        described["title"],
        kind,
        help=HELP.get(field_type, ""),
        choices=BOOLEAN if field_type == "boolean" else [(each, each) for each in options],
        is_required=is_required and kind != "checks",
        is_nullable=True,
    )
