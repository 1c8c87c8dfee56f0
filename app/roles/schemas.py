"""Requests and answers of /v1/permissions, /v1/roles, /v1/role-assignments and /v1/resources."""

from __future__ import annotations

from collections.abc import Iterable

from app.auth.permissions import Role
from app.core.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from app.core.errors import Entry, value_error
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.json_text import Json
from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Literal,
    Name,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, AttributedSchema, Schema
from app.roles.role_assignments import TARGETS

PERMISSION_KEY = "^[a-z][a-z0-9_.:-]{0,127}$"
ROLE_KEY = "^[a-z][a-z0-9_-]{0,63}$"
RESOURCE_TYPE = "^[A-Za-z][A-Za-z0-9_.:-]{0,63}$"
FLAG_KEY = "^[A-Za-z0-9._-]{1,128}$"
MAX_PERMISSIONS = 200  # of a role
RESOURCE_NAME = {"examples": ["apollo"]}
RESOURCE_ID = r"^[^\x00-\x1f\x7f-\x9f]{1,255}$"


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "key": "accountant",
        "kind": "product",
        "description": "Approve invoices.",
        "group": "Invoices",
        "requires_flag": "invoicing",
        "requires_limit": None,
        "name": "Accountant",
        "permissions": ["invoices:approve", "billing:read"],
        "inherits": "member",
        "assignable_by": "admin",
        "role": "accountant",
        "membership_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "group_id": None,
        "api_key_id": None,
        "resource": {"type": "project", "id": "apollo"},
        "resource_type": "project",
        "resource_id": "apollo",
        "expires_at": None,
        "source": "api",
        "type": "project",
        "parent": {"type": "folder", "id": "space"},
        "attributes": {"status": "open"},
        "replace_with": "viewer",
        "cursor": "WyJwcm9qZWN0IiwgImFwb2xsbyJd",
    }
    descriptions = {
        "key": "The key, by which it is named.",
        "kind": "Whose permission it is: the platform's `product` or this `service`.",
        "description": "What it allows, for people.",
        "name": "A name for people.",
        "type": "What kind of thing it is.",
        "id": "Which one it is.",
        "group": "Permissions of one group are shown together.",
        "requires_flag": "The key of a boolean flag. Only while it is on for the tenant the"
        " permission is held; null: always.",
        "requires_limit": "The key of a limit. Only while something is left of it the permission is"
        " held; null: always.",
        "permissions": "The keys of permissions of the product and of this service.",
        "inherits": "The key of a role whose permissions this one has too, of the same tenant or a"
        " template; null: none. At most 5 roles inherit one another in a row.",
        "assignable_by": "The lowest role of a membership that may assign this role.",
        "role": "The key of a role of the tenant, or of a template.",
        "membership_id": "The membership that has the role.",
        "group_id": "The SCIM group whose members have the role.",
        "api_key_id": "The API key of the tenant that has the role.",
        "resource": "The role holds for this resource and all below it; null: for the tenant.",
        "expires_at": "From then on the assignment has no effect; null: no end.",
        "parent": "The resource above; a right on it holds for this one too. At most 8 resources are"
        " below one another.",
        "attributes": "Facts about the resource, for the rules of flags; at most 16 KiB.",
    }


class AccessPermissionSchema(Documented, AnswerSchema):
    """A permission that a role can have."""

    has_pages = False

    key = Str(metadata={"examples": ["invoices:approve"]})
    kind = Literal("product", "service", description="Whose permission it is.")
    description = Str()
    group = Str(attribute="group_name")
    requires_flag = Str(nullable=True)
    requires_limit = Str(nullable=True)
    created_at = AwareDateTime(nullable=True, description="Null for a permission of the service.")
    updated_at = AwareDateTime(nullable=True, description="Null for a permission of the service.")

    def _dump_one(self, row: Json) -> dict[str, Json]:
        values = super()._dump_one(row)
        return {**values, "kind": values["kind"] or "product"}  # events have only columns


class PermissionSetSchema(Documented):
    """What a permission of the product is."""

    description = Name(load_default="")
    group = Name(load_default="", attribute="group_name")
    requires_flag = Str(nullable=True, load_default=None, pattern=FLAG_KEY)
    requires_limit = Str(nullable=True, load_default=None, pattern=FLAG_KEY)


class PermissionFileSchema(PermissionSetSchema):
    """A permission of the product in a file."""

    key = Str(required=True, pattern=PERMISSION_KEY)


class PermissionQuerySchema(Schema):
    """Filters of the list of permissions."""

    kind = Literal("product", "service", description="Only the product's, or only the service's.")
    group = Str(description="Only permissions of this group.", metadata={"examples": ["Invoices"]})


class AccessRoleSchema(Documented, AttributedSchema):
    """A role of a tenant, or a template, which every tenant has."""

    tenant_id = Uuid(nullable=True, description="Null for a template.")
    key = Str()
    name = Str()
    permissions = ListOf(Str(), description="Those that it inherits are not repeated.")
    inherits = Str(nullable=True)
    assignable_by = Choice(Role)
    is_template = Bool(description="Whether every tenant has the role. Only the platform edits it.")

    def _dump_one(self, row: Json) -> dict[str, Json]:
        values = row if isinstance(row, dict) else row._asdict()
        return super()._dump_one({**values, "is_template": values["tenant_id"] is None})


class AccessRoleUpdateSchema(Documented):
    """The fields of a role to change. The key stays."""

    name = Name(min_length=1)
    permissions = ListOf(Str(), metadata={"maxItems": MAX_PERMISSIONS})
    inherits = Str(nullable=True)
    assignable_by = Choice(Role)


class AccessRoleCreateSchema(AccessRoleUpdateSchema):
    """A new role."""

    key = Str(required=True, pattern=ROLE_KEY, description="It cannot change.")
    name = Name(required=True, min_length=1)
    permissions = ListOf(Str(), required=True, metadata={"maxItems": MAX_PERMISSIONS})
    inherits = Str(nullable=True, load_default=None)
    assignable_by = Choice(Role, load_default=Role.ADMIN)


class RoleFileSchema(Schema):
    """A file of ``flask roles apply``."""

    permissions = ListOf(Nested(PermissionFileSchema), load_default=list)
    roles = ListOf(Nested(AccessRoleCreateSchema), load_default=list)


class RoleOwnerSchema(Schema):
    """Whose the new role is."""

    tenant_id = Uuid(
        description="The tenant, for platform credentials. Without it the role is of the tenant of"
        " the token's organization, or a template if the credential names no organization."
    )


class AccessRoleQuerySchema(PageQuerySchema):
    """Filters of the list of roles."""

    tenant_id = Uuid(
        description="Only the roles that this tenant can use, for platform credentials."
    )
    is_template = Bool(description="Only templates, or only tenants' own roles.")
    key = Str(description="Only roles with this key.", metadata={"examples": ["accountant"]})


class ReplaceQuerySchema(Documented):
    """What those get who have the deleted role."""

    replace_with = Str(description="The key of the role that takes its place.")


class PlaceSchema(Documented):
    """The name of a resource."""

    type = Str(required=True, pattern=RESOURCE_TYPE)
    id = Name(required=True, min_length=1, metadata=RESOURCE_NAME)


class RoleAssignmentSchema(Documented, AttributedSchema):
    """A role of a membership, of a group's members or of an API key. One of the three is not null."""

    tenant_id = Uuid()
    membership_id = Uuid(nullable=True)
    group_id = Uuid(nullable=True)
    api_key_id = Uuid(nullable=True)
    role = Str()
    resource = Nested(PlaceSchema, nullable=True)
    expires_at = AwareDateTime(nullable=True)
    source = Str(description="Who made it: `api`, `idp` (the identity provider) or `scim`.")


class RoleAssignmentCreateSchema(Documented):
    """A role, and one of `membership_id`, `group_id` and `api_key_id`."""

    membership_id = Uuid(nullable=True)
    group_id = Uuid(nullable=True)
    api_key_id = Uuid(nullable=True)
    role = Str(required=True)
    resource = Nested(PlaceSchema, nullable=True, load_default=None)
    expires_at = AwareDateTime(nullable=True, load_default=None)

    def rules(self, values: dict[str, Json]) -> Iterable[Entry]:
        """Exactly one target."""
        given = [name for name in TARGETS if values.get(name) is not None]
        if len(given) != 1:
            yield value_error(["body"], f"give one of {', '.join(TARGETS)}", given)


class RoleAssignmentQuerySchema(PageQuerySchema):
    """Filters of the list of assignments."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    membership_id = Uuid(
        description="Only those of this membership; `extra_roles` of memberships has those of its"
        " groups too."
    )
    group_id = Uuid(description="Only those of this group.")
    api_key_id = Uuid(description="Only those of this API key.")
    role = Str(description="Only those of the role with this key.")
    resource_type = Str(description="Only those for this resource; with `resource_id`.")
    resource_id = Str(description="Only those for this resource; with `resource_type`.")

    def rules(self, values: dict[str, Json]) -> Iterable[Entry]:
        """The two parts of a resource's name belong together."""
        if ("resource_type" in values) != ("resource_id" in values):
            yield value_error(["query"], "resource_type and resource_id go together", None)


class ResourceSchema(Documented, AttributedSchema):
    """A resource of a tenant."""

    type = Str()
    id = Str(metadata=RESOURCE_NAME)  # type: ignore[assignment]  # a name that the product gives
    tenant_id = Uuid()
    parent = Nested(PlaceSchema, nullable=True)
    attributes = JsonObject()


class ResourceSetSchema(Documented):
    """Where a resource is, and what is known about it."""

    needs_body = False

    parent = Nested(PlaceSchema, nullable=True, load_default=None)
    attributes = JsonObject(load_default=dict)


class ResourceQuerySchema(Documented):
    """Filters of the list of resources."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    type = Str(description="Only resources of this type.")
    limit = Int(ge=1, le=MAX_LIMIT, load_default=DEFAULT_LIMIT, description="The most rows.")
    cursor = Str(description="`next_cursor` of the page before.")
