"""/v1/memberships/tenant."""

from __future__ import annotations

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, of_contract
from app.core.json_text import Json
from app.memberships import schemas, service
from app.memberships.directories import ManagedByDirectory
from app.memberships.extra_roles import EXTRA_ROLES
from app.memberships.models import Membership
from app.memberships.owners import LastOwner, OwnerOnly, RoleAboveOwn
from app.memberships.seats import SeatLimit
from app.memberships.service import IdpMembershipIdTaken, MembershipExists
from app.tenants.schemas import ActiveQuerySchema

blp = Blueprint(
    "memberships",
    __name__,
    url_prefix="/v1/memberships/tenant",
    description="The users of a tenant and their roles.",
)
INCLUDES = (TENANT, schemas.USER, HISTORY, EXTRA_ROLES)


@blp.get("")
@requires(Permission.MEMBERSHIPS_READ)
@blp.arguments(schemas.MembershipQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "user_id", "user.email", "role", "is_active", "created_at")
@blp.response(200, schemas.TenantMembershipSchema(many=True), includes=INCLUDES)
@has_past
def list_memberships(query: dict[str, Json]) -> Page:
    """List memberships."""
    return service.list_memberships(**query)


@blp.post("")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.MembershipCreateSchema)
@blp.response(201, schemas.TenantMembershipSchema)
@blp.raises(RoleAboveOwn, MembershipExists, IdpMembershipIdTaken, SeatLimit, NotFound.of("user"))
def create(query: dict[str, Json], body: dict[str, Json]) -> Membership:
    """Create a membership: make a user a member of the tenant."""
    tenant_id = target_id(query.get("tenant_id"))
    return service.create(tenant_id, body, actor=current_actor())


@blp.get("/<membership_id>")
@requires(Permission.MEMBERSHIPS_READ)
@blp.response(200, schemas.TenantMembershipSchema, includes=INCLUDES)
@has_past
def get(membership_id: str) -> Membership:
    """Get a membership."""
    return service.get_membership(membership_id)


@blp.patch("/<membership_id>/role")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(schemas.RoleQuerySchema, location="query")
@blp.response(200, schemas.TenantMembershipSchema)
@blp.raises(OwnerOnly, RoleAboveOwn, LastOwner, ManagedByDirectory)
@of_contract
def set_role(query: dict[str, Json], membership_id: str) -> Membership:
    """Give a member another role."""
    return service.set_role(membership_id, query["role"], actor=current_actor())


@blp.patch("/<membership_id>/active")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(ActiveQuerySchema, location="query")
@blp.response(200, schemas.TenantMembershipSchema)
@blp.raises(OwnerOnly, RoleAboveOwn, LastOwner, SeatLimit, ManagedByDirectory)
def set_active(query: dict[str, Json], membership_id: str) -> Membership:
    """Activate or end a membership."""
    return service.set_active(membership_id, query["is_active"], actor=current_actor())


add_history(blp, "/<membership_id>", "membership", service.get_membership)

BLUEPRINTS = (blp,)
