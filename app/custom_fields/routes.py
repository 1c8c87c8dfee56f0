"""/v1/custom-fields."""

from __future__ import annotations

from app.audit.includes import HISTORY, TENANT, TENANT_ID
from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, of_contract
from app.core.json_text import Json
from app.custom_fields import schemas, service
from app.custom_fields.json_schema import schema_of
from app.custom_fields.models import CustomField, FieldIndex
from app.custom_fields.search_index import index_state
from app.custom_fields.service import LIMITS, CustomFieldActive, FieldKeyTaken, IndexRowsLeft
from app.custom_fields.values.check import check
from app.custom_fields.values.rules import Rule

blp = Blueprint(
    "custom_fields",
    __name__,
    url_prefix="/v1/custom-fields",
    description="Fields that a tenant defines for its users and other entities.",
)
INCLUDES = (TENANT, TENANT_ID, schemas.INDEX, HISTORY)


@blp.get("")
@requires(Permission.CUSTOM_FIELDS_READ)
@blp.arguments(schemas.CustomFieldQuerySchema, location="query")
@blp.columns(
    "id",
    "idp_org_id",
    "entity_type",
    "field_key",
    "field_type",
    "is_required",
    "is_searchable",
    "is_active",
    "index.state",
)
@blp.response(200, schemas.CustomFieldSchema(many=True), includes=INCLUDES)
@has_past
def list_fields(query: dict[str, Json]) -> Page:
    """List custom fields, archived ones too."""
    paging, tenant_id = query.pop("paging"), query.pop("tenant_id", None)
    return service.list_fields(paging, tenant_id=tenant_id, filters=query)


@blp.post("")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.CustomFieldCreateSchema)
@blp.response(201, schemas.CustomFieldSchema)
@blp.raises(FieldKeyTaken, *LIMITS)
def create(query: dict[str, Json], body: dict[str, Json]) -> CustomField:
    """Create a custom field; where it is searchable, its index is built in the background."""
    tenant_id = target_id(query.get("tenant_id"))
    return service.create(tenant_id, body, actor=current_actor())


@blp.get("/json-schema")
@requires(Permission.CUSTOM_FIELDS_READ)
@blp.arguments(schemas.EntityTypeQuerySchema, location="query")
@blp.response(200, schemas.JsonSchemaSchema)
@has_past
def get_json_schema(query: dict[str, Json]) -> dict[str, Json]:
    """Get a JSON Schema of an entity's values, from which a form can be rendered."""
    tenant_id = target_id(query.get("tenant_id"))
    entity_type = query["entity_type"]
    return schema_of(entity_type, service.active_fields(tenant_id, entity_type))


@blp.post("/validate")
@requires(Permission.CUSTOM_FIELDS_READ)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.ValuesSchema)
@blp.response(200, schemas.ValidSchema)
def validate(query: dict[str, Json], body: dict[str, Json]) -> dict[str, bool]:
    """Check an entity's values against the custom fields, and list the errors."""
    tenant_id = target_id(query.get("tenant_id"))
    fields = service.active_fields(tenant_id, body["entity_type"])
    rules = [Rule.of(field) for field in fields]
    check(rules, body["values"], ("body", "values"), is_patch=False)
    return {"valid": True}


@blp.post("/reorder")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.OrderSchema)
@blp.response(200, schemas.CustomFieldSchema(many=True))
def reorder(query: dict[str, Json], body: dict[str, Json]) -> Page:
    """Put an entity type's custom fields in order: each gets its place as `sort_order`."""
    tenant_id = target_id(query.get("tenant_id"))
    fields = service.reorder(tenant_id, **body, actor=current_actor())
    return Page(fields, None)


@blp.get("/<field_id>")
@requires(Permission.CUSTOM_FIELDS_READ)
@blp.response(200, schemas.CustomFieldSchema, includes=INCLUDES)
@has_past
def get(field_id: str) -> CustomField:
    """Get a custom field."""
    return service.get_field(field_id)


@blp.patch("/<field_id>")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.arguments(schemas.CustomFieldUpdateSchema)
@blp.response(200, schemas.CustomFieldSchema)
@blp.raises(*LIMITS)
def update(body: dict[str, Json], field_id: str) -> CustomField:
    """Update a custom field; values that are stored already stay as they are."""
    return service.update(field_id, body, actor=current_actor())


@blp.delete("/<field_id>")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.response(204)
@blp.raises(CustomFieldActive, IndexRowsLeft)
def delete(field_id: str) -> None:
    """Delete an archived custom field and its index; stored values remain in `meta_data`."""
    service.delete(field_id, actor=current_actor())


@blp.post("/<field_id>/archive")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.response(200, schemas.CustomFieldSchema)
def archive(field_id: str) -> CustomField:
    """Archive a custom field: its values are not checked or searched, but remain stored."""
    return service.archive(field_id, actor=current_actor())


@blp.post("/<field_id>/restore")
@requires(Permission.CUSTOM_FIELDS_WRITE)
@blp.arguments(schemas.CustomFieldRestoreSchema)
@blp.response(200, schemas.CustomFieldSchema)
@of_contract
def restore(body: dict[str, Json], field_id: str) -> CustomField:
    """Restore an archived custom field; where it is searchable, its index's build is queued."""
    return service.restore(field_id, actor=current_actor())


@blp.get("/<field_id>/index")
@requires(Permission.CUSTOM_FIELDS_READ)
@blp.response(200, schemas.FieldIndexSchema)
def get_index(field_id: str) -> FieldIndex:
    """Show the state of a custom field's search index."""
    return index_state.get_index(field_id)


add_history(blp, "/<field_id>", "custom_field", service.get_field)

BLUEPRINTS = (blp,)
