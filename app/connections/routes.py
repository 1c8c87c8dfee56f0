"""/v1/scim-connections. The protocol itself, below /scim, is served by :mod:`app.scim.endpoints`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.connections import oauth, schemas, service
from app.connections.service import TooManyConnections
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.memberships.owners import OwnerOnly, RoleAboveOwn

blp = Blueprint(
    "scim_connections",
    __name__,
    url_prefix="/v1/scim-connections",
    description="Directories that provision people by SCIM 2.0.",
)
INCLUDES = (TENANT, HISTORY)


@blp.get("")
@requires(Permission.SCIM_READ)
@blp.arguments(schemas.ScimConnectionQuerySchema, location="query")
@blp.columns(
    "id",
    "tenant.slug",
    "name",
    "provider",
    "status",
    "user_count",
    "request_count",
    "error_count",
    "last_request_at",
)
@blp.response(200, schemas.ScimConnectionSchema(many=True), includes=INCLUDES)
def list_connections(query: dict[str, Any]) -> Page:
    """List SCIM connections."""
    return service.list_connections(query["paging"], tenant_id=query.get("tenant_id"))


@blp.post("")
@requires(Permission.SCIM_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.ScimConnectionCreateSchema)
@blp.response(201, schemas.ScimConnectionCreatedSchema, shown_once=("token",))
@blp.raises(RoleAboveOwn, TooManyConnections)
def create(query: dict[str, Any], body: dict[str, Any]) -> object:
    """Create a SCIM connection; only this answer shows its bearer token.

    Also needs `users:write` and `memberships:write`, which the connection exercises. Only an owner
    or a superadmin gives it the role `owner`.
    """
    tenant_id = target_id(query.get("tenant_id"))
    return service.create(tenant_id, body, **_giver())


@blp.get("/<connection_id>")
@requires(Permission.SCIM_READ)
@blp.response(200, schemas.ScimConnectionSchema, includes=INCLUDES)
def get(connection_id: str) -> object:
    """Get a SCIM connection, without its token."""
    return service.get_connection(connection_id)


@blp.patch("/<connection_id>")
@requires(Permission.SCIM_WRITE)
@blp.arguments(schemas.ScimConnectionUpdateSchema)
@blp.response(200, schemas.ScimConnectionSchema)
@blp.raises(OwnerOnly, RoleAboveOwn)
def update(body: dict[str, Any], connection_id: str) -> object:
    """Update a SCIM connection.

    The roles of present members follow a new mapping when their groups next change. Other roles or
    public keys need the permissions that a creation needs.
    """
    return service.update(connection_id, body, **_giver())


@blp.post("/<connection_id>/rotate")
@requires(Permission.SCIM_WRITE)
@blp.arguments(schemas.ScimRotationSchema, required=False)
@blp.response(200, schemas.ScimConnectionCreatedSchema, shown_once=("token",))
@blp.raises(OwnerOnly, RoleAboveOwn)
def rotate(body: dict[str, Any], connection_id: str) -> object:
    """Give the connection a new bearer token; the present one stays valid for a while.

    At most two tokens are valid: one that an earlier rotation left ends at once. Needs the
    permissions that a creation needs.
    """
    overlap = timedelta(hours=body["overlap_hours"])
    return service.rotate(connection_id, overlap=overlap, **_giver())


@blp.delete("/<connection_id>")
@requires(Permission.SCIM_WRITE)
@blp.response(204)
@blp.raises(OwnerOnly)
def delete(connection_id: str) -> None:
    """Delete a SCIM connection.

    Its users and their memberships stay, and can be edited again.
    """
    service.delete(connection_id, actor=current_principal().actor)


def _giver() -> dict[str, Any]:
    """The principal whose rights limit those of the connection."""
    principal = current_principal()
    return {"actor": principal.actor, "held": principal.permissions}


add_history(blp, "/<connection_id>", "scim_connection", service.get_connection)


BLUEPRINTS = (blp,)
PROTOCOLS = (oauth.blp,)
