"""Requests and answers of /v1/memberships/tenant."""

from __future__ import annotations

from app.auth.permissions import Permission, Role
from app.core.http.includes import by_id, columns_of, related
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Name, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema
from app.search.filters import MAX_QUERY, MIN_QUERY
from app.search.schemas import BY_WORDS
from app.users.models import User

BY_USERS_WORDS = {**BY_WORDS, "description": f"{BY_WORDS['description']} Those of the user count."}


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "idp_org_id": "org_01JZ4K",
        "created_by_user_id": "system:idp",
        "updated_by_user_id": "platform:operator",
        "idp_membership_id": "om_01JZ4N",
        "role": "admin",
    }
    descriptions = {
        "idp_membership_id": "The identity provider's id of the membership; empty without one.",
        "role": "The user's role in the tenant.",
        "is_active": "False: the membership is ended, and gives no access.",
    }


class TenantMembershipSchema(Documented, AnswerSchema):
    """A membership."""

    id = Uuid()
    tenant_id = Uuid()
    idp_org_id = Str()
    created_at = AwareDateTime()
    created_by_user_id = Str()
    updated_at = AwareDateTime()
    updated_by_user_id = Str()
    user_id = Uuid()
    idp_membership_id = Str()
    role = Str()
    is_active = Bool()


class MembershipCreateSchema(Documented):
    """A new, active membership of a user of the tenant."""

    user_id = Uuid(required=True, description="A user of the tenant.")
    role = Choice(Role, required=True)
    idp_membership_id = Name()


class MembershipQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of memberships."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    user_id = Uuid(description="Only this user's.")
    role = Choice(Role, description="Only memberships with this role.")
    is_active = Bool(description="Only active memberships, or only ended ones.")
    q = Str(min_length=MIN_QUERY, max_length=MAX_QUERY, metadata=BY_USERS_WORDS)


class RoleQuerySchema(Documented):
    """The new role."""

    role = Choice(Role, required=True, description="The new role.")


class Person(Schema):
    """What the fields about a person are, and an example of each."""

    examples = {
        "idp_user_id": "user_01JZ4M",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
    descriptions = {
        "idp_user_id": "The identity provider's id of the person.",
        "email": "The person's e-mail address.",
        "first_name": "The person's first name; empty if unknown.",
        "last_name": "The person's last name; empty if unknown.",
        "is_active": "False: the user is deactivated, and has no access.",
    }


class UserSummarySchema(Person, AnswerSchema):
    """The member."""

    id = Uuid()
    idp_user_id = Str()
    email = Str()
    first_name = Str()
    last_name = Str()
    is_active = Bool()


USER = related(
    "user",
    Nested(UserSummarySchema, description="The member."),
    by_id("users.find_summaries", *columns_of(User, UserSummarySchema)),
    lambda row: row.user_id,
    Permission.USERS_READ,
)
