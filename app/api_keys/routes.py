"""/v1/api-keys."""

from __future__ import annotations

from types import SimpleNamespace

from app.api_keys import schemas, service
from app.api_keys.service import ExpiryBeyondOwn, PermissionBeyondOwn, TooManyKeys
from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_principal, requires
from app.auth.models import ApiKey
from app.auth.permissions import Permission
from app.auth.tenant_choice import OwnerChoiceSchema, owner_id
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json

blp = Blueprint(
    "api_keys", __name__, url_prefix="/v1/api-keys", description="Credentials of services."
)
INCLUDES = (TENANT, HISTORY)


@blp.get("")
@requires(Permission.API_KEYS_READ)
@blp.arguments(schemas.ApiKeyQuerySchema, location="query")
@blp.columns("id", "name", "prefix", "tenant.slug", "permissions", "expires_at", "revoked_at")
@blp.response(200, schemas.ApiKeySchema(many=True), includes=INCLUDES)
def list_keys(query: dict[str, Json]) -> Page:
    """List API keys, revoked ones included."""
    return service.list_keys(**query)


@blp.post("")
@requires(Permission.API_KEYS_WRITE)
@blp.arguments(OwnerChoiceSchema, location="query")
@blp.arguments(schemas.ApiKeyCreateSchema)
@blp.response(201, schemas.ApiKeyCreatedSchema, shown_once=("secret",))
@blp.raises(PermissionBeyondOwn, ExpiryBeyondOwn, TooManyKeys)
def create(query: dict[str, Json], body: dict[str, Json]) -> SimpleNamespace:
    """Create an API key; only this answer shows its secret.

    A platform credential creates a key of one tenant with `tenant_id`. Without it, and without an
    organization in its token, it creates a platform key, which has its permissions in **all**
    tenants. A tenant can have 100 active keys.

    A key that expires can only create keys that expire no later: set `expires_at`.
    """
    principal = current_principal()
    key, secret = service.create(
        **body,
        tenant_id=owner_id(query.get("tenant_id")),
        held=principal.permissions,
        held_until=service.get_key(principal.key_id).expires_at if principal.key_id else None,
        actor=principal.actor,
    )
    return SimpleNamespace(**key._asdict(), secret=secret)


@blp.get("/<key_id>")
@requires(Permission.API_KEYS_READ)
@blp.response(200, schemas.ApiKeySchema, includes=INCLUDES)
def get(key_id: str) -> ApiKey:
    """Get an API key, without its secret."""
    return service.get_key(key_id)


@blp.delete("/<key_id>")
@requires(Permission.API_KEYS_WRITE)
@blp.response(204)
def revoke(key_id: str) -> None:
    """Revoke an API key; it stays in the list, with `revoked_at`."""
    service.revoke(key_id, actor=current_principal().actor)


add_history(blp, "/<key_id>", "api_key", service.get_key)

BLUEPRINTS = (blp,)
