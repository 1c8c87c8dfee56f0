"""A tenant's custom fields as a JSON Schema (2020-12) that a front end can render a form from.

It accepts all that :mod:`app.custom_fields.values.check` accepts, and refuses wrong types, wrong
options and missing required fields. Rules that a schema cannot express (that a phone number is
assigned) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.custom_fields.models import CustomField, FieldType
from app.custom_fields.values.types import (
    DATE_PATTERN,
    DATETIME_PATTERN,
    DECIMAL_BOUND,
    DECIMAL_PATTERN,
    PHONE_PATTERN,
    URL_PATTERN,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"

VALUES: dict[FieldType, dict[str, object]] = {
    FieldType.TEXT: {"type": "string"},
    FieldType.LONG_TEXT: {"type": "string"},
    FieldType.INTEGER: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    FieldType.DECIMAL: {
        "type": ["number", "string"],
        "exclusiveMinimum": -DECIMAL_BOUND,
        "exclusiveMaximum": DECIMAL_BOUND,
        "pattern": DECIMAL_PATTERN,
    },
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.DATE: {"type": "string", "format": "date", "pattern": DATE_PATTERN},
    FieldType.DATETIME: {"type": "string", "format": "date-time", "pattern": DATETIME_PATTERN},
    FieldType.EMAIL: {"type": "string", "format": "email"},
    FieldType.URL: {"type": "string", "format": "uri", "pattern": URL_PATTERN},
    FieldType.PHONE: {"type": "string", "pattern": PHONE_PATTERN},
}
"""Of every type but the selects, whose options are the field's."""


def schema_of(entity_type: str, fields: Iterable[CustomField]) -> dict[str, object]:
    """The schema of an entity's values with these fields, in their order; other keys are free.

    Each property carries its FieldType as ``x-field-type``, which tells text from long_text.
    """
    fields = list(fields)
    return {
        "$schema": DIALECT,
        "title": entity_type,
        "type": "object",
        "properties": {field.field_key: _property(field) for field in fields},
        "required": [field.field_key for field in fields if field.is_required],
    }


def _property(field: CustomField) -> dict[str, object]:
    field_type = FieldType(field.field_type)
    chosen = {"type": "string", "enum": list(field.options or ())}  # without options no value fits
    values = VALUES.get(field_type, chosen)
    if field_type == FieldType.MULTI_SELECT:
        values = {"type": "array", "items": chosen, "uniqueItems": True}
    return {"title": field.label, "x-field-type": field_type.value, **values}
