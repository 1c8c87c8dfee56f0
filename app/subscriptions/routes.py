"""The URLs of subscriptions, and who may use them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from app.auth.guard import current_actor, home_tenant_id, requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.subscriptions import service
from app.subscriptions.schemas import (
    SourceHeadersSchema,
    SubscriptionCancelSchema,
    SubscriptionCreateSchema,
    SubscriptionQuerySchema,
    SubscriptionSchema,
    SubscriptionTenantQuerySchema,
    SubscriptionUpdateSchema,
)
from app.tenants.service import target_tenant

blp = Blueprint(
    "subscriptions",
    __name__,
    url_prefix="/v1/billing/subscriptions",
    description="What the billing provider knows about each tenant's subscriptions.",
)
BLUEPRINTS = (blp,)

IGNORED = {"X-Update-Ignored": {"schema": {"type": "string", "enum": ["stale"]}}}


def provider_only(view: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a tenant's credential before anything of the request is read."""

    @wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        service.require_provider(current_actor())
        return view(*args, **kwargs)

    return wrapper


@blp.get("")
@requires(Permission.BILLING_READ)
@blp.arguments(SubscriptionQuerySchema, location="query")
@blp.response(200, SubscriptionSchema(many=True))
def list_subscriptions(query: dict[str, Any]) -> Any:
    """List subscriptions, oldest first."""
    return service.list_subscriptions(**query)


@blp.post("")
@requires(Permission.BILLING_WRITE)
@provider_only
@blp.arguments(SubscriptionTenantQuerySchema, location="query")
@blp.arguments(SubscriptionCreateSchema)
@blp.response(201, SubscriptionSchema)
def create_subscription(query: dict[str, Any], body: dict[str, Any]) -> Any:
    """Create a subscription; the tenant's plan follows.

    For platform credentials: no tenant gives itself a plan.
    """
    tenant = target_tenant(query["tenant_id"], home=home_tenant_id())
    return service.create(tenant.id, body, actor=current_actor())


@blp.get("/<subscription_id>")
@requires(Permission.BILLING_READ)
@blp.response(200, SubscriptionSchema)
def get_subscription(subscription_id: str) -> Any:
    """Get a subscription."""
    return service.get_subscription(subscription_id)


@blp.patch("/<subscription_id>")
@requires(Permission.BILLING_WRITE)
@blp.arguments(SourceHeadersSchema, location="headers")
@blp.arguments(SubscriptionUpdateSchema)
@blp.response(200, SubscriptionSchema, headers=IGNORED)
def update_subscription(headers: dict[str, Any], body: dict[str, Any], subscription_id: str) -> Any:
    """Update a subscription; the tenant's plan follows.

    A tenant's credential may change the billing address and contact, the delivery preferences and
    `auto_renew`; the other fields are the provider's (403 `provider_field`).
    """
    subscription, is_applied = service.update_subscription(
        subscription_id, body, **headers, actor=current_actor()
    )
    return subscription, {} if is_applied else {"X-Update-Ignored": "stale"}


@blp.post("/<subscription_id>/cancel")
@requires(Permission.BILLING_WRITE)
@blp.arguments(SubscriptionCancelSchema)
@blp.response(200, SubscriptionSchema)
def cancel_subscription(body: dict[str, Any], subscription_id: str) -> Any:
    """Record a cancellation; the provider is not called.

    The same again changes nothing; an immediate one after one at the period's end is a new one.
    """
    return service.cancel(subscription_id, **body, actor=current_actor())
