"""Schemas of /v1/custom-fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.auth.tenant_choice import TenantChoiceSchema
from app.core.errors import Entry, Invalid
from app.core.http.includes import Include
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.json_text import Json
from app.core.validation.fields import (
    Bool,
    Choice,
    Int,
    JsonObject,
    ListOf,
    LiteralTrue,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.custom_fields.models import FieldType, IndexState
from app.custom_fields.search_index import index_state
from app.custom_fields.search_index.filters import FILTER
from app.custom_fields.values.check import MAX_OPTIONS, clean_options

KEY_PATTERN = "^[a-z][a-z0-9_]{0,62}$"
OPTIONS = (
    f"Of select and multi_select only: at most {MAX_OPTIONS}, stored without repeats, "
    "and 32 KiB of JSON (409 `options_limit`)."
)


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "idp_org_id": "org_01JZ4K",
        "entity_type": "user",
        "field_key": "cost_center",
        "label": "Cost center",
        "options": None,
        "values": {"cost_center": "R-12"},
        "dialect": "https://json-schema.org/draft/2020-12/schema",
        "title": "user",
        "type": "object",
        "properties": {"cost_center": {"title": "Cost center", "type": "string"}},
        "required": ["cost_center"],
        "error": None,
        "built_version": None,
    }
    descriptions = {
        "entity_type": "What the field belongs to, such as `user`.",
        "field_key": "The key of its values.",
        "label": "The field's name for people.",
        "field_type": "What its values are.",
        "options": "The values to choose from, of select and multi_select; null for every other type.",
        "is_required": "Whether each entity needs a value.",
        "is_searchable": "Whether lists can be filtered by it; a worker builds the index for that.",
        "is_active": "False: archived; its values stay stored, but are not checked or searched.",
        "sort_order": "Its place among the fields of the entity type, lowest first.",
        "state": "The state of the index; filters are answered in `ready` only.",
        "total": "How many entities there are to index, as counted when the build began.",
        "dialect": "The dialect of JSON Schema.",
        "field_ids": "The ids of the fields, in their new order.",
        "built_version": "The field's version when the build ended; null until then.",
    }


class CustomFieldSchema(Documented, RowSchema):
    """A custom field."""

    optional = ("options",)

    idp_org_id = Str()
    entity_type = Str()
    field_key = Str()
    label = Str()
    field_type = Choice(FieldType)
    options = ListOf(Str(), nullable=True)
    is_required = Bool()
    is_searchable = Bool()
    is_active = Bool()
    sort_order = Int()
    version = Int()


class CustomFieldCreateSchema(Documented):
    """A new field; its entity_type, field_key and field_type never change."""

    entity_type = Str(required=True, pattern=KEY_PATTERN)
    field_key = Str(required=True, pattern=KEY_PATTERN)
    label = Str(required=True, min_length=1, max_length=255)
    field_type = Choice(FieldType, required=True)
    options = ListOf(Str(), nullable=True, load_default=None, description=OPTIONS)
    is_required = Bool(load_default=False)
    is_searchable = Bool(load_default=False)
    sort_order = Int(ge=0, load_default=0)

    def rules(self, values: dict[str, Json]) -> Sequence[Entry]:
        try:
            clean_options(values["field_type"], values["options"])
        except Invalid as fault:
            return fault.errors
        return ()


class CustomFieldUpdateSchema(Documented):
    """What can change about a field."""

    label = Str(min_length=1, max_length=255)
    options = ListOf(Str(), nullable=True, description=OPTIONS)
    is_required = Bool()
    is_searchable = Bool()
    sort_order = Int(ge=0)


class CustomFieldRestoreSchema(Documented):
    """The confirmation that a field shall be restored."""

    confirm = LiteralTrue(required=True, description="Always true, as a confirmation.")


class CustomFieldQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of fields."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    entity_type = Str(description="Only fields of this entity type.")
    field_type = Choice(FieldType, description="Only fields of this type.")
    is_searchable = Bool(description="Only searchable fields, or only the others.")
    is_active = Bool(description="Only active fields, or only archived ones.")


class MetaDataFilters(JsonObject):
    """The ``meta_data.…`` parameters of a list, in either spelling, as they were sent."""

    deep_object = True


class MetaDataQuerySchema(PageQuerySchema):
    """The query of a list that can be filtered by searchable custom fields."""

    meta_data = MetaDataFilters(
        metadata={
            "description": "Filters by searchable custom fields. They are `meta_data.<field_key>=` or"
            " `meta_data[<field_key>]=`. Several are allowed, and one range (`<field_key>__gte` and"
            " `__lte`) or one prefix (`<field_key>__prefix`) in addition.",
            "additionalProperties": {"type": "string"},
        }
    )

    def load(self, data: Any, *, unknown: str | None = None) -> Any:  # type: ignore[override]
        """The value ``meta_data`` has the filters by their parameters' names."""
        filters = {name: text for name, text in data.items() if FILTER.fullmatch(name)}
        others = {name: text for name, text in data.items() if name not in filters}
        return {**super().load(others, unknown=unknown), "meta_data": filters}


class FieldIndexSchema(Documented, AnswerSchema):
    """How far a field's search index is: ``done`` of ``total`` entities."""

    field_id = Uuid(description="The custom field.")
    state = Choice(IndexState)
    done = Int(description="How many entities are indexed.")
    total = Int()
    error = Str(nullable=True, description="Why the build failed; null if it did not.")
    built_version = Int(nullable=True)


class EntityTypeQuerySchema(TenantChoiceSchema):
    """Whose fields of which kind of entity."""

    entity_type = Str(
        required=True, pattern=KEY_PATTERN, description=Documented.descriptions["entity_type"]
    )


class ValuesSchema(Documented):
    """The values of one entity, whole."""

    entity_type = Str(
        required=True, pattern=KEY_PATTERN, description="What the values are of, such as `user`."
    )
    values = JsonObject(required=True, description="The values by their field's key.")


class ValidSchema(Documented, AnswerSchema):
    """The values fit; values that do not are refused with 422."""

    valid = Bool(description="Always true.")


class JsonSchemaSchema(Documented, AnswerSchema):
    """A JSON Schema (2020-12) of an object; its properties are in the order of a form."""

    dialect = Str(data_key="$schema", attribute="$schema")
    title = Str(description="The entity type.")
    type = Str(description="Always `object`.")
    properties = JsonObject(description="A schema for each active field, by its key.")
    required = ListOf(Str(), description="The keys of the fields that need a value.")


class OrderSchema(Documented):
    """The fields of an entity type in their new order; those not named come after them."""

    entity_type = Str(required=True, pattern=KEY_PATTERN)
    field_ids = ListOf(Uuid(), required=True)


def _indexes(rows: Sequence[Any]) -> list[Any]:
    found = {index.field_id: index for index in index_state.get_indexes([row.id for row in rows])}
    return [found[row.id] for row in rows]


INDEX = Include(
    "index", Nested(FieldIndexSchema, description="How far its search index is."), _indexes
)
