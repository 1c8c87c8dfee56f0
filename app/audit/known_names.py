"""The names of actors and targets in the audit trail, as columns of its statements."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ColumnExpressionArgument,
    Text,
    Uuid,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from app.audit.models import AuditEvent
from app.auth.models import ApiKey
from app.billing.models import BillingCustomer
from app.connections.models import ScimConnection
from app.custom_fields.models import CustomField
from app.domains.models import Domain, JoinRequest
from app.flags.models import FeatureOverride
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.plans.models import PlanPreset, PlanPrice
from app.roles.models import AccessRole, ProductPermission
from app.setup_links.models import SetupLink
from app.sso_connections.models import SsoConnection
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.models import User
from app.webhooks.endpoints.models import WebhookEndpoint


def _as_id(text: ColumnExpressionArgument[str]) -> ColumnElement[UUID]:
    """The text column as a UUID; NULL for a text that is not a UUID."""
    return case((func.pg_input_is_valid(text, "uuid"), cast(text, Uuid)))


_full_name = func.trim(func.concat_ws(" ", User.first_name, User.last_name))
_of_user = select(func.coalesce(func.nullif(_full_name, ""), User.email)).where(
    User.tenant_id == AuditEvent.tenant_id
)
_user_name = _of_user.where(User.id == _as_id(AuditEvent.actor))


def _id_after(prefix: str) -> ColumnElement[UUID]:
    """The UUID after ``prefix`` in the actor's id; NULL for an actor without it."""
    rest = func.substr(AuditEvent.actor, len(prefix) + 1, type_=Text)
    return case((AuditEvent.actor.startswith(prefix), _as_id(rest)))


# The table of API keys has no row-level security, so hide the names of platform keys from tenants.
_is_platform = func.current_setting("app.platform", True) == "on"
_keys = select(ApiKey.name).where(or_(ApiKey.tenant_id == AuditEvent.tenant_id, _is_platform))
_key_name = _keys.where(ApiKey.id == _id_after("key:"))
_connection_name = select(ScimConnection.name).where(
    ScimConnection.tenant_id == AuditEvent.tenant_id, ScimConnection.id == _id_after("scim:")
)
_invited = select(Invitation.email).where(
    Invitation.tenant_id == AuditEvent.tenant_id, Invitation.id == _id_after("invitation:")
)
_link_contact = select(func.nullif(SetupLink.contact, "")).where(
    SetupLink.tenant_id == AuditEvent.tenant_id, SetupLink.id == _id_after("setup_link:")
)
_actor_names = (_user_name, _key_name, _connection_name, _invited, _link_contact)
ACTOR_NAME = func.coalesce(
    *(names.scalar_subquery() for names in _actor_names),
    literal("", Text),
).label("actor_name")

_target = _as_id(AuditEvent.target_id)
_price_name = func.coalesce(PlanPrice.price_id, PlanPrice.lookup_key)
_member = and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id)
TARGET_NAME = func.coalesce(
    case(
        {
            "api_key": _keys.where(ApiKey.id == _target).scalar_subquery(),
            "user": _of_user.where(User.id == _target).scalar_subquery(),
            "membership": _of_user.join(Membership, _member)
            .where(Membership.id == _target)
            .scalar_subquery(),
            **{
                kind: select(name).where(model.id == _target).scalar_subquery()
                for kind, model, name in (
                    ("billing_customer", BillingCustomer, BillingCustomer.customer_id),
                    ("custom_field", CustomField, CustomField.label),
                    ("domain", Domain, Domain.name),
                    ("join_request", JoinRequest, JoinRequest.email),
                    ("invitation", Invitation, Invitation.email),
                    ("override", FeatureOverride, FeatureOverride.flag_key),
                    ("plan_price", PlanPrice, _price_name),
                    ("plan_preset", PlanPreset, PlanPreset.name),
                    ("permission", ProductPermission, ProductPermission.key),
                    ("role", AccessRole, AccessRole.name),
                    ("scim_connection", ScimConnection, ScimConnection.name),
                    ("sso_connection", SsoConnection, SsoConnection.name),
                    ("setup_link", SetupLink, SetupLink.contact),
                    ("subscription", Subscription, Subscription.bp_subscription_id),
                    ("tenant", Tenant, Tenant.name),
                    ("webhook_endpoint", WebhookEndpoint, WebhookEndpoint.url),
                )
            },
        },
        value=AuditEvent.target_type,
    ),
    literal("", Text),
).label("target_name")
"""The name of the changed row; empty for a row that was deleted, or of another type."""
