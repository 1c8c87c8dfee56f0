"""/v1/tenants."""

from __future__ import annotations

from typing import Any

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import NotFound, ProviderField
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import PATH_NAMES, has_past, of_contract
from app.core.json_text import Json
from app.custom_fields.search_index.filters import IndexNotReady
from app.tenants import counts, deletion, notes, schemas, service
from app.tenants.deletion import DeletionStarted, TenantActive
from app.tenants.includes import ASSIGNED_UNTIL, LIMITS, META_DATA, PLAN_SOURCE, SUSPENSION_REASON
from app.tenants.lookup import tenant_id_of
from app.tenants.models import Tenant, TenantDeletion, TenantNotes
from app.tenants.service import IdpOrgIdDeleted, IdpOrgIdTaken, SlugTaken, TenantDeleting

blp = Blueprint(
    "tenants", __name__, url_prefix="/v1/tenants", description="Customer organizations."
)
PATH_NAMES["tenant_id"] = tenant_id_of
INCLUDES = (TENANT, META_DATA, PLAN_SOURCE, LIMITS, ASSIGNED_UNTIL, SUSPENSION_REASON, HISTORY)


@blp.get("")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.TenantQuerySchema, location="query")
@blp.columns("id", "slug", "name", "idp_org_id", "plan_name", "is_active", "created_at")
@blp.response(200, schemas.TenantSchema(many=True), includes=INCLUDES)
@blp.raises(IndexNotReady)
@has_past
def list_tenants(query: dict[str, Json]) -> Page:
    """List all tenants."""
    paging, meta_data = query.pop("paging"), query.pop("meta_data")
    return service.list_tenants(paging, filters=query, meta_data=meta_data)


@blp.post("")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.TenantCreateSchema)
@blp.response(201, schemas.TenantSchema)
@blp.raises(IdpOrgIdTaken, IdpOrgIdDeleted, SlugTaken)
def create(body: dict[str, Json]) -> Tenant:
    """Create a tenant."""
    return service.create(body, actor=current_actor())


@blp.get("/<tenant_id>")
@requires(Permission.TENANTS_READ)
@blp.response(200, schemas.TenantSchema, includes=INCLUDES)
@has_past
def get(tenant_id: str) -> Tenant:
    """Get a tenant."""
    return service.get_tenant(tenant_id)


@blp.patch("/<tenant_id>")
@requires(Permission.TENANTS_WRITE)
@blp.arguments(schemas.TenantUpdateSchema)
@blp.response(200, schemas.TenantSchema)
@blp.raises(ProviderField, IdpOrgIdTaken, IdpOrgIdDeleted, SlugTaken)
def update(body: dict[str, Json], tenant_id: str) -> Tenant:
    """Update a tenant."""
    return service.update(tenant_id, body, actor=current_actor())


@blp.get("/<tenant_id>/meta_data")
@requires(Permission.TENANTS_READ)
@blp.response(200, schemas.TenantMetaDataSchema)
@has_past
def get_meta_data(tenant_id: str) -> Tenant:
    """Get a tenant's metadata."""
    return service.get_tenant(tenant_id)


@blp.patch("/<tenant_id>/meta_data")
@requires(Permission.TENANTS_WRITE)
@blp.arguments(schemas.TenantMetaDataPatchSchema)
@blp.response(200, schemas.TenantMetaDataSchema)
def patch_meta_data(body: dict[str, Json], tenant_id: str) -> Tenant:
    """Change some keys of a tenant's metadata, by a merge patch (RFC 7396)."""
    return service.patch_meta_data(tenant_id, body["patches"], actor=current_actor())


@blp.patch("/<tenant_id>/active")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.ActiveQuerySchema, location="query")
@blp.response(200, schemas.TenantSchema)
@blp.raises(TenantDeleting)
@of_contract
def set_active(query: dict[str, Json], tenant_id: str) -> Tenant:
    """Activate or suspend a tenant."""
    return service.set_active(tenant_id, query["is_active"], actor=current_actor())


@blp.post("/<tenant_id>/suspend")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.SuspensionSchema)
@blp.response(200, schemas.TenantSchema)
def suspend(body: dict[str, Json], tenant_id: str) -> Tenant:
    """Suspend a tenant; of a suspended tenant only the reason is changed.

    The reason is in the audit trail, and in reads with `include=suspension_reason`. Activating the
    tenant removes it.
    """
    return service.suspend(tenant_id, body["reason"], actor=current_actor())


@blp.get("/<tenant_id>/counts")
@requires(Permission.TENANTS_READ)
@blp.response(200, schemas.TenantCountsSchema)
def get_counts(tenant_id: str) -> Any:
    """Count what a tenant has: users, members by role, API keys and more.

    At most 10,000 rows of a kind are read.
    """
    found, principal = counts.get_counts(tenant_id), current_principal()
    hidden = [name for name, needed in counts.NEEDED.items() if not principal.has(needed)]
    return found._replace(**dict.fromkeys(hidden))


@blp.get("/<tenant_id>/notes")
@requires(Permission.SUPERADMIN)
@blp.response(200, schemas.TenantNotesSchema)
def get_notes(tenant_id: str) -> TenantNotes:
    """Get the platform's own notes on a tenant; empty where there are none."""
    return notes.get_notes(tenant_id)


@blp.put("/<tenant_id>/notes")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.TenantNotesUpdateSchema)
@blp.response(200, schemas.TenantNotesSchema)
def set_notes(body: dict[str, Json], tenant_id: str) -> TenantNotes:
    """Replace the platform's own notes on a tenant, which no tenant's credential can read.

    The audit trail of the platform tells who changed them, and how long they were and are.
    """
    return notes.set_notes(tenant_id, body["text"], actor=current_actor())


@blp.delete("/<tenant_id>")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.TenantDeletionRequestSchema)
@blp.response(202, schemas.TenantDeletionSchema)
@blp.raises(TenantActive)
def request_deletion(body: dict[str, Json], tenant_id: str) -> tuple[Any, dict[str, str]]:
    """Delete a suspended tenant with all its data after the grace period.

    It lasts `TENANT_GRACE_DAYS`. Until then the tenant can be restored. A second request answers
    the date of the first. The `idp_org_id` stays reserved after the deletion; the slug is free.
    """
    requested = deletion.request(tenant_id, body["slug"], actor=current_actor())
    return requested, {"Location": f"/v1/tenants/{tenant_id}/deletion"}


@blp.get("/<tenant_id>/deletion")
@requires(Permission.SUPERADMIN)
@blp.response(200, schemas.TenantDeletionSchema)
@blp.raises(NotFound.of(TenantDeletion))
def get_deletion(tenant_id: str) -> Any:
    """Show when a tenant will be deleted, if somebody has requested it."""
    return deletion.get_deletion(tenant_id)


@blp.post("/<tenant_id>/restore")
@requires(Permission.SUPERADMIN)
@blp.response(200, schemas.TenantSchema)
@blp.raises(DeletionStarted)
def restore(tenant_id: str) -> Tenant:
    """Withdraw the request to delete a tenant; it stays suspended."""
    return deletion.restore(tenant_id, actor=current_actor())


add_history(blp, "/<tenant_id>", "tenant", service.get_tenant)

BLUEPRINTS = (blp,)
