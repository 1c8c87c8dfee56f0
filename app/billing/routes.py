"""/v1/billing/customers and /v1/billing/providers, and the public receivers of their events."""

from __future__ import annotations

from app.audit.includes import TENANT
from app.auth.guard import current_actor, public, requires
from app.auth.permissions import Permission
from app.billing import customers, status
from app.billing.handler import receiver_for
from app.billing.models import BillingCustomer
from app.billing.providers import PROVIDERS
from app.billing.schemas import (
    BillingCustomerQuerySchema,
    BillingCustomerSchema,
    BillingCustomerSetSchema,
    BillingProviderSchema,
    WaitingCustomerSchema,
)
from app.billing.status import ApiKeyMissing
from app.core.db.pages import Page
from app.core.errors import DatabaseUnavailable, NotFound
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.inbox.providers import RECEIVERS, register
from app.inbox.routes import receive
from app.inbox.verification import WebhookSecretMissing

blp = Blueprint(
    "billing_customers",
    __name__,
    url_prefix="/v1/billing/customers",
    description="The tenants of customers at billing providers.",
)
receivers = Blueprint(
    "billing_webhooks",
    __name__,
    url_prefix="/webhooks/billing",
    description="Receivers of the events of billing providers.",
)
providers = Blueprint(
    "billing_providers",
    __name__,
    url_prefix="/v1/billing/providers",
    description="The billing providers, and the comparisons with them.",
)
BLUEPRINTS = (blp, receivers, providers)
MAX_CUSTOMER_ID = 255

for _provider in PROVIDERS.values():
    register(receiver_for(_provider))


@receivers.post("/<provider>")
@public
@receivers.response(200, description="The event is stored; it is applied after the answer.")
@receivers.alt_response(401, description="No configured secret matches the signature.")
@receivers.alt_response(413, description="The body is larger than 5 MiB.")
@receivers.raises(NotFound.of("provider"), DatabaseUnavailable, WebhookSecretMissing)
def receive_billing_event(provider: str) -> dict[str, Json]:
    """Receive a billing provider's event, signed by its sender.

    `provider` is `stripe`, `paddle`, `chargebee`, `lemonsqueezy` or `polar`. Answers as the identity
    provider's receiver does.
    """
    return receive(RECEIVERS[_known(provider)])


@providers.get("")
@requires(Permission.SUPERADMIN, platform_only=True)
@providers.columns(
    "provider", "has_receiver", "has_api_key", "last_event_at", "waiting", "finished_at", "compared",
    "repaired", "error",
)  # fmt: skip
@providers.response(200, BillingProviderSchema(many=True))
def list_providers() -> list[dict[str, Json]]:
    """List the configured billing providers, and the last comparison with each."""
    return [one for one in status.list_providers() if one["has_receiver"] or one["has_api_key"]]


@providers.post("/<provider>/reconcile")
@requires(Permission.SUPERADMIN, platform_only=True)
@providers.response(202, BillingProviderSchema)
@providers.raises(NotFound.of("provider"), ApiKeyMissing)
def reconcile(provider: str) -> dict[str, Json]:
    """Compare all subscriptions with a billing provider's in a job, and repair what differs.

    A comparison that is under way continues.
    """
    return status.begin_comparison(_known(provider), actor=current_actor())


@blp.get("")
@requires(Permission.BILLING_READ)
@blp.arguments(BillingCustomerQuerySchema, location="query")
@blp.columns("id", "provider", "customer_id", "tenant_id", "is_manual", "created_at")
@blp.response(200, BillingCustomerSchema(many=True), includes=(TENANT,))
def list_customers(query: dict[str, Json]) -> Page:
    """List the customers at billing providers whose tenant is known."""
    return customers.list_customers(**query)


@blp.get("/waiting")
@requires(Permission.SUPERADMIN, platform_only=True)
@blp.columns("provider", "customer_id", "bp_subscription_id", "events", "since")
@blp.response(200, WaitingCustomerSchema(many=True))
def list_waiting_customers() -> list[dict[str, Json]]:
    """List the customers whose events wait for a tenant; of the 200 events that came first."""
    return status.list_waiting()


@blp.put("/<provider>/<customer_id>")
@requires(Permission.SUPERADMIN)
@blp.arguments(BillingCustomerSetSchema)
@blp.response(200, BillingCustomerSchema)
@blp.raises(NotFound.of(BillingCustomer))
def set_customer(body: dict[str, Json], provider: str, customer_id: str) -> BillingCustomer:
    """Set the tenant of a customer at a billing provider; its waiting events are applied.

    It counts where neither the subscription's metadata nor a known subscription of the customer says
    which tenant it is, and stays when the customer's metadata changes. Known subscriptions stay
    with their tenant.
    """
    name, tenant_id = _known(provider, customer_id), body["tenant_id"]
    return customers.set_tenant(name, customer_id, tenant_id, actor=current_actor())


@blp.delete("/<provider>/<customer_id>")
@requires(Permission.SUPERADMIN)
@blp.response(204)
@blp.raises(NotFound.of(BillingCustomer))
def delete_customer(provider: str, customer_id: str) -> None:
    """Delete the tenant of a customer at a billing provider; known subscriptions stay."""
    customers.delete(_known(provider, customer_id), customer_id, actor=current_actor())


def _known(provider: str, customer_id: str = "") -> str:
    """The provider of a path; raises NotFound for another word, and for an impossible id."""
    if provider not in PROVIDERS:
        raise NotFound.of("provider")
    if len(customer_id) > MAX_CUSTOMER_ID or not customer_id.isprintable():
        raise NotFound.of(BillingCustomer)
    return provider
