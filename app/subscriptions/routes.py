"""/v1/billing/subscriptions."""

from __future__ import annotations

from urllib.parse import quote

from app.audit.includes import HISTORY, TENANT, TENANT_ID
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantOrOwnSchema, target_id
from app.core.db.pages import Page
from app.core.errors import ProviderField
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, of_contract
from app.core.json_text import Json
from app.subscriptions import service
from app.subscriptions.models import Subscription
from app.subscriptions.schemas import (
    BILLING,
    CANCELLATION,
    IS_MANAGED,
    ITEMS,
    SOURCE_TIMESTAMP,
    STATUS_CLASS,
    ForceSchema,
    SourceHeadersSchema,
    SubscriptionCancelSchema,
    SubscriptionCreateSchema,
    SubscriptionQuerySchema,
    SubscriptionSchema,
    SubscriptionUpdateSchema,
)
from app.subscriptions.service import BpSubscriptionIdTaken, ManagedByProvider

blp = Blueprint(
    "subscriptions",
    __name__,
    url_prefix="/v1/billing/subscriptions",
    description="Copies of the billing provider's subscriptions.",
)
BLUEPRINTS = (blp,)

UNKNOWN_PLAN = {
    "X-Plan-Unknown": {
        "schema": {"type": "string"},
        "description": "The subscription's `plan_name`, percent-encoded, where no preset has it, so "
        "that it has no effect yet.",
    }
}
IGNORED = {
    "X-Update-Ignored": {
        "schema": {"type": "string", "enum": ["stale"]},
        "description": "`stale` where the update is not newer than the newest applied one.",
    }
}


Answered = tuple[Subscription, dict[str, str]]  # the row, and headers
SAFE = " !#$&'()*+,-./:;<=>?@[]^_`{|}~"  # ASCII that a header can have, but not the percent sign
INCLUDES = (
    TENANT, TENANT_ID, CANCELLATION, STATUS_CLASS, SOURCE_TIMESTAMP, BILLING, IS_MANAGED, ITEMS,
    HISTORY,
)  # fmt: skip


@blp.get("")
@requires(Permission.BILLING_READ)
@blp.arguments(SubscriptionQuerySchema, location="query")
@blp.columns(
    "id", "tenant.slug", "bp_subscription_id", "bp_status", "plan_name", "start_date", "auto_renew"
)
@blp.response(200, SubscriptionSchema(many=True), includes=INCLUDES)
@has_past
def list_subscriptions(query: dict[str, Json]) -> Page:
    """List subscriptions."""
    return service.list_subscriptions(**query)


@blp.post("")
@requires(Permission.BILLING_WRITE, provider_only=True)
@blp.arguments(TenantOrOwnSchema, location="query")
@blp.arguments(SubscriptionCreateSchema)
@blp.response(201, SubscriptionSchema, headers=UNKNOWN_PLAN)
@blp.raises(BpSubscriptionIdTaken)
def create_subscription(query: dict[str, Json], body: dict[str, Json]) -> Answered:
    """Create a subscription; the tenant's plan follows.

    Only platform credentials can create a subscription, because it sets the tenant's plan.
    """
    tenant_id = target_id(query["tenant_id"])
    subscription, has_plan = service.create(tenant_id, body, actor=current_actor())
    return subscription, _unknown_plan(subscription, has_plan)


@blp.get("/<subscription_id>")
@requires(Permission.BILLING_READ)
@blp.response(200, SubscriptionSchema, includes=INCLUDES)
@has_past
def get_subscription(subscription_id: str) -> Subscription:
    """Get a subscription."""
    return service.get_subscription(subscription_id)


@blp.patch("/<subscription_id>")
@requires(Permission.BILLING_WRITE)
@blp.arguments(ForceSchema, location="query")
@blp.arguments(SourceHeadersSchema, location="headers")
@blp.arguments(SubscriptionUpdateSchema)
@blp.response(200, SubscriptionSchema, headers={**IGNORED, **UNKNOWN_PLAN})
@blp.raises(ProviderField, ManagedByProvider)
@of_contract
def update_subscription(
    query: dict[str, Json], headers: dict[str, Json], body: dict[str, Json], subscription_id: str
) -> Answered:
    """Update a subscription; the tenant's plan follows.

    A tenant's credential can change the billing address and contact, the delivery preferences and
    `auto_renew`. Only a platform credential can change the other fields (403 `provider_field`).
    While the service receives the events of the subscription's provider, `auto_renew` and the other
    fields can only be changed with `?force=true` (409 `managed_by_provider`).
    """
    force = _may_force(query)
    updated = service.update_subscription(
        subscription_id, body, **headers, force=force, actor=current_actor()
    )
    ignored = {} if updated.is_applied else {"X-Update-Ignored": "stale"}
    unknown = _unknown_plan(updated.subscription, updated.has_plan)
    return updated.subscription, {**ignored, **unknown}


@blp.post("/<subscription_id>/cancel")
@requires(Permission.BILLING_WRITE)
@blp.arguments(ForceSchema, location="query")
@blp.arguments(SubscriptionCancelSchema)
@blp.response(200, SubscriptionSchema)
@blp.raises(ManagedByProvider)
@of_contract
def cancel_subscription(
    query: dict[str, Json], body: dict[str, Json], subscription_id: str
) -> Subscription:
    """Record a cancellation; the provider is not called.

    Repeating a cancellation changes nothing. After a cancellation at the period's end, an immediate
    cancellation replaces it. While the service receives the events of the subscription's provider,
    cancel there, or use `?force=true` (409 `managed_by_provider`).
    """
    force = _may_force(query)
    return service.cancel(subscription_id, **body, force=force, actor=current_actor())


def _may_force(query: dict[str, bool]) -> bool:
    """Whether the request asks for force; raises PermissionDenied if it may not."""
    if query["force"]:
        current_principal().check(Permission.SUPERADMIN)
    return query["force"]


def _unknown_plan(subscription: Subscription, has_plan: bool) -> dict[str, str]:
    """The header about a plan without a preset; headers are ASCII."""
    return {} if has_plan else {"X-Plan-Unknown": quote(subscription.plan_name, safe=SAFE)}


add_history(blp, "/<subscription_id>", "subscription", service.get_subscription)
