"""Requests and answers of /v1/memberships/tenant."""

from __future__ import annotations

from app.auth.permissions import Role
from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Str, Uuid
from app.core.validation.schemas import Schema

MAX_KEY = 255

EXAMPLES = {
    "idp_org_id": "org_01JZ4K",
    "created_by_user_id": "system:idp",
    "updated_by_user_id": "platform:operator",
    "idp_membership_id": "om_01JZ4N",
    "role": "admin",
}


class TenantMembershipSchema(Schema):
    """A membership."""

    examples = EXAMPLES

    id = Uuid(required=True)
    tenant_id = Uuid(required=True)
    idp_org_id = Str(required=True)
    created_at = AwareDateTime(required=True)
    created_by_user_id = Str(required=True)
    updated_at = AwareDateTime(required=True)
    updated_by_user_id = Str(required=True)
    user_id = Uuid(required=True)
    idp_membership_id = Str(required=True)
    role = Str(required=True)
    is_active = Bool(required=True)


class MembershipCreateSchema(Schema):
    """A new, active membership of a user of the tenant."""

    examples = EXAMPLES

    user_id = Uuid(required=True)
    role = Choice(Role, required=True)
    idp_membership_id = Str(max_length=MAX_KEY)


class MembershipQuerySchema(PageQuerySchema):
    """Filters of the list of memberships."""

    examples = EXAMPLES

    tenant_id = Uuid()
    user_id = Uuid()
    role = Choice(Role)
    is_active = Bool()


class RoleQuerySchema(Schema):
    """The new role."""

    examples = EXAMPLES

    role = Choice(Role, required=True)
