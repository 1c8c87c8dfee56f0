"""/v1/sso-connections."""

from __future__ import annotations

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.sso_connections import schemas, service
from app.sso_connections.models import SsoConnection

blp = Blueprint(
    "sso_connections",
    __name__,
    url_prefix="/v1/sso-connections",
    description="Connections to companies' own sign-in, as the identity provider reports them.",
)
BLUEPRINTS = (blp,)
INCLUDES = (TENANT, HISTORY)


@blp.get("")
@requires(Permission.SSO_READ)
@blp.arguments(schemas.SsoConnectionQuerySchema, location="query")
@blp.columns(
    "id", "tenant.slug", "name", "provider", "type", "state", "domains", "certificate_ends_at"
)
@blp.response(200, schemas.SsoConnectionSchema(many=True), includes=INCLUDES)
def list_connections(query: dict[str, Json]) -> Page:
    """List SSO connections.

    They follow the identity provider's webhooks; change them there.
    """
    return service.list_connections(**query)


@blp.get("/<sso_connection_id>")
@requires(Permission.SSO_READ)
@blp.response(200, schemas.SsoConnectionSchema, includes=INCLUDES)
def get(sso_connection_id: str) -> SsoConnection:
    """Get an SSO connection."""
    return service.get_connection(sso_connection_id)


add_history(blp, "/<sso_connection_id>", "sso_connection", service.get_connection)
