"""Forms of metadata, made from the JSON Schema of the custom fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.console import api
from app.console.forms import Field

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


class BooleanField(Field):
    """A menu of yes, no and none, whose value is a JSON boolean."""

    def read(self, form: Any) -> Any:
        """True, False, or None for none."""
        return {"true": True, "false": False}.get(form.get(self.name, ""))

    def shown(self, value: Any) -> Any:
        """The value of the menu."""
        return {True: "true", False: "false"}.get(value, "")


def metadata_fields(tenant_id: UUID, entity_type: str) -> list[Field]:
    """The inputs of an entity's custom fields, in their order."""
    schema = _schema(tenant_id, entity_type)
    return [
        _field(key, described, is_required=key in schema["required"])
        for key, described in schema["properties"].items()
    ]


def metadata_patches(values: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) of what a form sends: null removes a value."""
    return {name: None if value in ("", []) else value for name, value in values.items()}


def metadata_facts(
    tenant_id: UUID, entity_type: str, values: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """The label and the value of each custom field, then the stored keys that have no field."""
    found = api.find("/v1/custom-fields/json-schema", tenant_id=tenant_id, entity_type=entity_type)
    fields = found.data["properties"] if found else {}
    known = [(each["title"], values.get(key)) for key, each in fields.items()]
    return known + [(key, value) for key, value in values.items() if key not in fields]


def _schema(tenant_id: UUID, entity_type: str) -> Any:
    path = "/v1/custom-fields/json-schema"
    return api.get(path, tenant_id=tenant_id, entity_type=entity_type).data


def _field(key: str, described: Mapping[str, Any], *, is_required: bool) -> Field:
    field_type = described.get("x-field-type", "text")
    options = described.get("enum") or described.get("items", {}).get("enum") or ()
    kind = KINDS.get(field_type, "text")
    return (BooleanField if field_type == "boolean" else Field)(
        key,
        described["title"],
        kind,
        help={"phone": "With the country code, such as +4930901820.", "datetime": "In UTC."}.get(
            field_type, ""
        ),
        choices=BOOLEAN if field_type == "boolean" else [(each, each) for each in options],
        is_required=is_required and kind not in ("checks",),
        is_nullable=True,
    )
