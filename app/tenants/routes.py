"""/v1/tenants."""

from __future__ import annotations

from typing import Any

from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import ProviderField
from app.core.http.blueprint import Blueprint
from app.core.http.parser import ignores_unknown_query
from app.tenants import service
from app.tenants.models import Tenant
from app.tenants.schemas import (
    ActiveQuerySchema,
    TenantCreateSchema,
    TenantQuerySchema,
    TenantSchema,
    TenantUpdateSchema,
)
from app.tenants.service import IdpOrgIdTaken, SlugTaken

blp = Blueprint(
    "tenants", __name__, url_prefix="/v1/tenants", description="Customer organizations."
)


@blp.get("")
@requires(Permission.SUPERADMIN)
@blp.arguments(TenantQuerySchema, location="query")
@blp.response(200, TenantSchema(many=True))
def list_tenants(query: dict[str, Any]) -> Page:
    """List all tenants."""
    return service.list_tenants(query.pop("paging"), filters=query)


@blp.post("")
@requires(Permission.SUPERADMIN)
@blp.arguments(TenantCreateSchema)
@blp.response(201, TenantSchema)
@blp.raises(IdpOrgIdTaken, SlugTaken)
def create(body: dict[str, Any]) -> Tenant:
    """Create a tenant."""
    return service.create(body, actor=current_actor())


@blp.get("/<tenant_id>")
@requires(Permission.TENANTS_READ)
@blp.response(200, TenantSchema)
def get(tenant_id: str) -> Tenant:
    """Get a tenant."""
    return service.get_tenant(tenant_id)


@blp.patch("/<tenant_id>")
@requires(Permission.TENANTS_WRITE)
@blp.arguments(TenantUpdateSchema)
@blp.response(200, TenantSchema)
@blp.raises(ProviderField, IdpOrgIdTaken, SlugTaken)
def update(body: dict[str, Any], tenant_id: str) -> Tenant:
    """Change a tenant's fields."""
    return service.update(tenant_id, body, actor=current_actor())


@blp.patch("/<tenant_id>/active")
@requires(Permission.SUPERADMIN)
@blp.arguments(ActiveQuerySchema, location="query")
@blp.response(200, TenantSchema)
@ignores_unknown_query
def set_active(query: dict[str, Any], tenant_id: str) -> Tenant:
    """Activate or suspend a tenant."""
    return service.set_active(tenant_id, query["is_active"], actor=current_actor())


add_history(blp, "/<tenant_id>", "tenant", service.get_tenant)

BLUEPRINTS = (blp,)
