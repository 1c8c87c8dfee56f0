"""/v1/users."""

from __future__ import annotations

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core.db.pages import Page
from app.core.errors import ProviderField
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, of_contract
from app.core.json_text import Json
from app.custom_fields import metadata
from app.custom_fields.entities import USER
from app.custom_fields.search_index.filters import IndexNotReady
from app.memberships.directories import ManagedByDirectory
from app.memberships.owners import LastOwner, OwnerOnly
from app.memberships.seats import SeatLimit
from app.tenants.service import TenantDeleting
from app.users import schemas, service
from app.users.emails import EmailTaken, ErasureRequested
from app.users.models import User
from app.users.service import IdpUserIdTaken

blp = Blueprint("users", __name__, url_prefix="/v1/users", description="People of a tenant.")
INCLUDES = (TENANT, schemas.MEMBERSHIPS, HISTORY)


@blp.get("")
@requires(Permission.USERS_READ)
@blp.arguments(schemas.UserQuerySchema, location="query")
@blp.columns("id", "email", "first_name", "last_name", "idp_user_id", "tenant.slug", "is_active")
@blp.response(200, schemas.UserSchema(many=True), includes=INCLUDES)
@blp.raises(IndexNotReady)
@has_past
def list_users(query: dict[str, Json]) -> Page:
    """List users."""
    return service.list_users(**query)


@blp.post("")
@requires(Permission.USERS_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.UserCreateSchema)
@blp.response(201, schemas.UserSchema)
@blp.raises(TenantDeleting, IdpUserIdTaken, EmailTaken)
def create(query: dict[str, Json], body: dict[str, Json]) -> User:
    """Create a user."""
    tenant_id = target_id(query.get("tenant_id"))
    return service.create(tenant_id, body, actor=current_actor())


@blp.get("/<user_id>")
@requires(Permission.USERS_READ)
@blp.response(200, schemas.UserSchema, includes=INCLUDES)
@has_past
def get(user_id: str) -> User:
    """Get a user."""
    return service.get_user(user_id)


@blp.patch("/<user_id>")
@requires(Permission.USERS_WRITE)
@blp.arguments(schemas.UserUpdateSchema)
@blp.response(200, schemas.UserSchema)
@blp.raises(
    ProviderField,
    OwnerOnly,
    LastOwner,
    IdpUserIdTaken,
    EmailTaken,
    ErasureRequested,
    SeatLimit,
    ManagedByDirectory,
)
def update(body: dict[str, Json], user_id: str) -> User:
    """Update a user; `is_active` activates or deactivates the user."""
    return service.update(user_id, body, actor=current_actor())


@blp.patch("/<user_id>/meta_data")
@requires(Permission.USERS_WRITE)
@blp.arguments(schemas.UserMetaDataPatchSchema)
@blp.response(200, schemas.UserSchema)
@of_contract
def patch_meta_data(body: dict[str, Json], user_id: str) -> User:
    """Change some keys of a user's metadata, by a merge patch (RFC 7396)."""
    return metadata.patch(USER, user_id, body["patches"], actor=current_actor())


add_history(blp, "/<user_id>", "user", service.get_user)

BLUEPRINTS = (blp,)
