"""/v1/permissions, /v1/roles, /v1/role-assignments and /v1/resources."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, owner_id, target_id
from app.core.db.pages import Page
from app.core.errors import Invalid, NotFound, value_error
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past
from app.memberships.owners import LastOwner, OwnerOnly, RoleAboveOwn
from app.roles import access_resources, product_permissions, role_assignments, schemas, service
from app.roles.access_resources import ResourceCycle, ResourceInUse, ResourceTooDeep, TooManyBelow
from app.roles.models import AccessRole, ProductPermission
from app.roles.product_permissions import PermissionInUse, TooManyPermissions
from app.roles.role_assignments import RoleAssigned
from app.roles.role_graph import RoleCycle, RoleTooDeep, TooManyRoles
from app.roles.service import HigherRoleLacks, RoleExists, RoleFixed, RoleInUse, TemplateReadOnly
from app.roles.target_names import TARGET_NAME

permissions = Blueprint(
    "permissions",
    __name__,
    url_prefix="/v1/permissions",
    description="The permissions of the platform's product, and those of this service.",
)
roles = Blueprint(
    "roles",
    __name__,
    url_prefix="/v1/roles",
    description="Roles of tenants, and templates that every tenant has.",
)
assignments = Blueprint(
    "role_assignments",
    __name__,
    url_prefix="/v1/role-assignments",
    description="Further roles of members, groups and API keys, also for one resource only.",
)
resources = Blueprint(
    "resources",
    __name__,
    url_prefix="/v1/resources",
    description="Names of things of the product, for which roles can be assigned.",
)
BLUEPRINTS = (permissions, roles, assignments, resources)
INCLUDES = (TENANT, HISTORY)
ASSIGNMENT_INCLUDES = (*INCLUDES, TARGET_NAME)


@permissions.get("")
@requires(Permission.ROLES_READ)
@has_past
@permissions.arguments(schemas.PermissionQuerySchema, location="query")
@permissions.columns("key", "kind", "group", "description", "requires_flag", "requires_limit")
@permissions.response(200, schemas.AccessPermissionSchema(many=True))
def list_permissions(query: dict[str, Any]) -> list[Any]:
    """List the permissions that a role can have: this service's, then the product's."""
    return product_permissions.list_permissions(**query)


@permissions.get("/<permission_key>")
@requires(Permission.ROLES_READ)
@has_past
@permissions.response(200, schemas.AccessPermissionSchema)
def get_permission(permission_key: str) -> ProductPermission | SimpleNamespace:
    """Get a permission."""
    return product_permissions.get_permission(permission_key)


@permissions.put("/<permission_key>")
@requires(Permission.SUPERADMIN)
@permissions.arguments(schemas.PermissionSetSchema)
@permissions.response(200, schemas.AccessPermissionSchema)
@permissions.raises(TooManyPermissions)
def set_permission(body: dict[str, Any], permission_key: str) -> ProductPermission:
    """Set a permission of the product: create or replace it.

    The key has up to 128 small letters, digits and `_.:-`, and begins with a letter. Whoever is
    owner has it at once.
    """
    _check("permission_key", permission_key, schemas.PERMISSION_KEY)
    return product_permissions.put(permission_key, body, actor=current_actor())


@permissions.delete("/<permission_key>")
@requires(Permission.SUPERADMIN)
@permissions.response(204)
@permissions.raises(PermissionInUse)
def delete_permission(permission_key: str) -> None:
    """Delete a permission of the product; refused (409) while a role has it."""
    product_permissions.delete(permission_key, actor=current_actor())


@roles.get("")
@requires(Permission.ROLES_READ)
@has_past
@roles.arguments(schemas.AccessRoleQuerySchema, location="query")
@roles.columns("id", "tenant.slug", "key", "name", "permissions", "inherits", "assignable_by")
@roles.response(200, schemas.AccessRoleSchema(many=True), includes=INCLUDES)
def list_roles(query: dict[str, Any]) -> Page:
    """List roles: the templates, and the tenant's own."""
    return service.list_roles(**query)


@roles.post("")
@requires(Permission.ROLES_WRITE)
@roles.arguments(schemas.RoleOwnerSchema, location="query")
@roles.arguments(schemas.AccessRoleCreateSchema)
@roles.response(201, schemas.AccessRoleSchema)
@roles.raises(RoleAboveOwn, RoleExists, TooManyRoles, RoleCycle, RoleTooDeep, TemplateReadOnly)
def create_role(query: dict[str, Any], body: dict[str, Any]) -> AccessRole:
    """Create a role of a tenant; as the platform also a template, which every tenant has.

    You need every permission of the role yourself, those that it inherits included.
    """
    return service.create(owner_id(query.get("tenant_id")), body, actor=current_actor())


@roles.get("/<role_id>")
@requires(Permission.ROLES_READ)
@has_past
@roles.response(200, schemas.AccessRoleSchema, includes=INCLUDES)
def get_role(role_id: str) -> AccessRole:
    """Get a role."""
    return service.get_role(role_id)


@roles.patch("/<role_id>")
@requires(Permission.ROLES_WRITE)
@roles.arguments(schemas.AccessRoleUpdateSchema)
@roles.response(200, schemas.AccessRoleSchema)
@roles.raises(RoleAboveOwn, RoleCycle, RoleTooDeep, RoleFixed, HigherRoleLacks, TemplateReadOnly)
def update_role(body: dict[str, Any], role_id: str) -> AccessRole:
    """Update a role, for all who have it.

    You need every permission that it has before and after. Of the five roles of memberships only the
    name and the permissions of the product can change, of `owner` nothing. Each of the five must
    have the permissions of the product that a lower one has: give them to `admin` first.
    """
    return service.update(role_id, body, actor=current_actor())


@roles.delete("/<role_id>")
@requires(Permission.ROLES_WRITE)
@roles.arguments(schemas.ReplaceQuerySchema, location="query")
@roles.response(204)
@roles.raises(RoleAboveOwn, RoleInUse, RoleCycle, RoleTooDeep, RoleFixed, TemplateReadOnly)
def delete_role(query: dict[str, Any], role_id: str) -> None:
    """Delete a role.

    It is refused (409 `role_in_use`) while it is assigned or inherited. With `replace_with` the other
    role takes its place, for up to 1,000 uses.
    """
    service.delete(role_id, **query, actor=current_actor())


@assignments.get("")
@requires(Permission.ROLES_READ)
@has_past
@assignments.arguments(schemas.RoleAssignmentQuerySchema, location="query")
@assignments.columns("id", "tenant.slug", "role", "target_name", "resource", "expires_at")
@assignments.response(200, schemas.RoleAssignmentSchema(many=True), includes=ASSIGNMENT_INCLUDES)
def list_assignments(query: dict[str, Any]) -> Page:
    """List assignments of roles."""
    return role_assignments.list_assignments(**query)


@assignments.post("")
@requires(Permission.ROLES_WRITE)
@assignments.arguments(TenantChoiceSchema, location="query")
@assignments.arguments(schemas.RoleAssignmentCreateSchema)
@assignments.response(201, schemas.RoleAssignmentSchema)
@assignments.raises(
    RoleAboveOwn,
    RoleAssigned,
    *map(NotFound.of, ("role", "membership", "group", "api_key", "resource")),
)
def create_assignment(query: dict[str, Any], body: dict[str, Any]) -> SimpleNamespace:
    """Create an assignment: give a role to a membership, to a group's members or to an API key.

    It is added to what they have, and counts at the next request. You need every permission of the
    role yourself, and the role that its `assignable_by` names.
    """
    return role_assignments.create(_tenant(query), body, actor=current_actor())


@assignments.get("/<role_assignment_id>")
@requires(Permission.ROLES_READ)
@has_past
@assignments.response(200, schemas.RoleAssignmentSchema, includes=ASSIGNMENT_INCLUDES)
def get_assignment(role_assignment_id: str) -> SimpleNamespace:
    """Get an assignment of a role."""
    return role_assignments.get_assignment(role_assignment_id)


@assignments.delete("/<role_assignment_id>")
@requires(Permission.ROLES_WRITE)
@assignments.response(204)
@assignments.raises(OwnerOnly, LastOwner)
def delete_assignment(role_assignment_id: str) -> None:
    """Delete an assignment of a role; the role ends at once."""
    role_assignments.remove(role_assignment_id, actor=current_actor())


@resources.get("")
@requires(Permission.ROLES_READ)
@has_past
@resources.arguments(schemas.ResourceQuerySchema, location="query")
@resources.columns("type", "id", "parent", "attributes", "updated_at")
@resources.response(200, schemas.ResourceSchema(many=True))
def list_resources(query: dict[str, Any]) -> Page:
    """List resources, by type and id."""
    return access_resources.list_resources(**query)


@resources.get("/<resource_type>/<resource_id>")
@requires(Permission.ROLES_READ)
@has_past
@resources.arguments(TenantChoiceSchema, location="query")
@resources.response(200, schemas.ResourceSchema)
def get_resource(query: dict[str, Any], resource_type: str, resource_id: str) -> SimpleNamespace:
    """Get a resource."""
    return access_resources.get_resource(_tenant(query), resource_type, resource_id)


@resources.put("/<resource_type>/<resource_id>")
@requires(Permission.ROLES_WRITE)
@resources.arguments(TenantChoiceSchema, location="query")
@resources.arguments(schemas.ResourceSetSchema)
@resources.response(200, schemas.ResourceSchema)
@resources.raises(RoleAboveOwn, ResourceCycle, ResourceTooDeep, TooManyBelow, NotFound.of("parent"))
def set_resource(
    query: dict[str, Any], body: dict[str, Any], resource_type: str, resource_id: str
) -> SimpleNamespace:
    """Set a resource: register it, or replace its parent and its attributes.

    A type has up to 64 letters, digits and `_.:-`, an id up to 255 characters. A right on the
    parent holds for the resource too, at the next question. Where this would give permissions to
    yourself, you need them already.
    """
    _check("resource_type", resource_type, schemas.RESOURCE_TYPE)
    _check("resource_id", resource_id, schemas.RESOURCE_ID)
    return access_resources.put(
        _tenant(query), resource_type, resource_id, body, actor=current_actor()
    )


@resources.delete("/<resource_type>/<resource_id>")
@requires(Permission.ROLES_WRITE)
@resources.arguments(TenantChoiceSchema, location="query")
@resources.response(204)
@resources.raises(ResourceInUse)
def delete_resource(query: dict[str, Any], resource_type: str, resource_id: str) -> None:
    """Delete a resource; refused (409) while others are below it, or roles are assigned for it."""
    access_resources.delete(_tenant(query), resource_type, resource_id, actor=current_actor())


def _tenant(query: dict[str, Any]) -> UUID:
    return target_id(query.get("tenant_id"))


def _check(name: str, value: str, pattern: str) -> None:
    """Raise Invalid if a new row's name in the path does not match the pattern."""
    if not re.fullmatch(pattern, value):
        raise Invalid(value_error(["path", name], f"it must match {pattern}", value))


add_history(roles, "/<role_id>", "role", service.get_role)
add_history(
    assignments, "/<role_assignment_id>", "role_assignment", role_assignments.get_assignment
)
