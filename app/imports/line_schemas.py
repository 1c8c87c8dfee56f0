"""The lines of an import: the fields of the API's creates, and ids in place of path and query."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from app.core.errors import Entry
from app.core.validation.fields import AwareDateTime, Bool, JsonObject, Literal, Nested, Str
from app.core.validation.messages import refused
from app.core.validation.schemas import Schema
from app.flags.schemas import OverrideCreateSchema
from app.memberships.schemas import MembershipCreateSchema
from app.roles.schemas import ROLE_KEY, AccessRoleUpdateSchema, PlaceSchema
from app.subscriptions.schemas import SubscriptionCreateSchema
from app.tenants.schemas import TenantCreateSchema
from app.users.schemas import UserCreateSchema


class Kind(StrEnum):
    """The types of lines, in the order in which an export writes them."""

    TENANT = "tenant"
    SUBSCRIPTION = "subscription"
    USER = "user"
    MEMBERSHIP = "membership"
    OVERRIDE = "override"
    ROLE = "role"
    RESOURCE = "resource"
    ROLE_ASSIGNMENT = "role_assignment"


class OfTenantSchema(Schema):
    """A line about something of a tenant."""

    idp_org_id = Str(required=True)


class TenantLineSchema(TenantCreateSchema):
    """A tenant, by its ``idp_org_id``."""

    type = Literal(Kind.TENANT.value, required=True)
    is_active = Bool()


class UserLineSchema(OfTenantSchema, UserCreateSchema):
    """A user, by ``idp_user_id``; ``meta_data`` replaces the stored object."""

    type = Literal(Kind.USER.value, required=True)
    is_active = Bool()


class MembershipLineSchema(OfTenantSchema, MembershipCreateSchema):
    """A membership, by ``idp_membership_id``, or by the ``idp_user_id`` of its user."""

    class Meta(Schema.Meta):
        exclude = ("user_id",)

    type = Literal(Kind.MEMBERSHIP.value, required=True)
    idp_user_id = Str()
    is_active = Bool()

    def rules(self, values: dict[str, Any]) -> Iterable[Entry]:
        if not values.get("idp_user_id") and not values.get("idp_membership_id"):
            yield refused("missing", ["body", "idp_user_id"], None)


class SubscriptionLineSchema(OfTenantSchema, SubscriptionCreateSchema):
    """A subscription, by ``bp_subscription_id``, with its recorded cancellation."""

    type = Literal(Kind.SUBSCRIPTION.value, required=True)
    source_timestamp = AwareDateTime(nullable=True)
    canceled_at = AwareDateTime(nullable=True)
    cancel_at_period_end = Bool(nullable=True)
    cancel_reason = Str(max_length=500, nullable=True)


class OverrideLineSchema(OfTenantSchema, OverrideCreateSchema):
    """An override, by ``preset_name`` (by default the tenant's plan) and ``flag_key``."""

    class Meta(Schema.Meta):
        exclude = ("plan_preset_id",)

    type = Literal(Kind.OVERRIDE.value, required=True)
    preset_name = Str()


class RoleLineSchema(OfTenantSchema, AccessRoleUpdateSchema):
    """A role of the tenant's own, by ``key``."""

    type = Literal(Kind.ROLE.value, required=True)
    key = Str(required=True, pattern=ROLE_KEY)


class ResourceLineSchema(OfTenantSchema):
    """A resource, by the type and id in ``resource``."""

    type = Literal(Kind.RESOURCE.value, required=True)
    resource = Nested(PlaceSchema, required=True)
    parent = Nested(PlaceSchema, nullable=True)
    attributes = JsonObject()


class RoleAssignmentLineSchema(OfTenantSchema):
    """An assignment to a member, who is named by ``idp_user_id`` or ``email``."""

    type = Literal(Kind.ROLE_ASSIGNMENT.value, required=True)
    idp_user_id = Str()
    email = Str()
    role = Str(required=True)
    resource = Nested(PlaceSchema, nullable=True)
    expires_at = AwareDateTime(nullable=True)

    def rules(self, values: dict[str, Any]) -> Iterable[Entry]:
        if not values.get("idp_user_id") and not values.get("email"):
            yield refused("missing", ["body", "idp_user_id"], None)


SCHEMAS: dict[Kind, Schema] = {
    Kind.TENANT: TenantLineSchema(),
    Kind.SUBSCRIPTION: SubscriptionLineSchema(),
    Kind.USER: UserLineSchema(),
    Kind.MEMBERSHIP: MembershipLineSchema(),
    Kind.OVERRIDE: OverrideLineSchema(),
    Kind.ROLE: RoleLineSchema(),
    Kind.RESOURCE: ResourceLineSchema(),
    Kind.ROLE_ASSIGNMENT: RoleAssignmentLineSchema(),
}
KIND = Literal(*(kind.value for kind in Kind))
