"""/v1/webhook-endpoints."""

from __future__ import annotations

from types import SimpleNamespace

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import OwnerChoiceSchema, owner_id
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.includes import by_id, related
from app.core.json_text import Json
from app.core.validation.fields import AwareDateTime
from app.webhooks.endpoints import schemas, service
from app.webhooks.endpoints.encryption import SecretsKeyMissing
from app.webhooks.endpoints.models import WebhookEndpoint, WebhookEndpointState
from app.webhooks.endpoints.service import TooManyEndpoints

blp = Blueprint(
    "webhook_endpoints",
    __name__,
    url_prefix="/v1/webhook-endpoints",
    description="URLs to which events are delivered.",
)
BLUEPRINTS = (blp,)
FAILING_SINCE = related(
    "failing_since",
    AwareDateTime(
        nullable=True,
        description="When the failures began that no success has followed; null for none.",
    ),
    by_id(
        "webhook_endpoint_states.find_failing",
        WebhookEndpointState.endpoint_id,
        WebhookEndpointState.failing_since,
    ),
    lambda row: row.id,
    column="failing_since",
)
INCLUDES = (TENANT, HISTORY, FAILING_SINCE)


@blp.get("")
@requires(Permission.EVENTS_READ)
@blp.arguments(schemas.WebhookEndpointQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "url", "types", "is_active", "disabled_reason")
@blp.response(200, schemas.WebhookEndpointSchema(many=True), includes=INCLUDES)
def list_endpoints(query: dict[str, Json]) -> Page:
    """List webhook endpoints."""
    return service.list_endpoints(**query)


@blp.post("")
@requires(Permission.EVENTS_WRITE)
@blp.arguments(OwnerChoiceSchema, location="query")
@blp.arguments(schemas.WebhookEndpointCreateSchema)
@blp.response(201, schemas.WebhookEndpointSecretSchema, shown_once=("secret",))
@blp.raises(TooManyEndpoints, SecretsKeyMissing)
def create(query: dict[str, Json], body: dict[str, Json]) -> SimpleNamespace:
    """Create a webhook endpoint; only this answer shows its secret.

    A tenant's endpoint gets the tenant's events, in the form in which the tenant reads them in the
    feed. A platform credential creates it with `tenant_id`. Without it, and without an
    organization in its token, it creates an endpoint of the platform, which gets the events of
    **all** tenants and of the platform. Each can have 20 endpoints. Also needs `events:read`, because the endpoint gets what this permission reads.
    """
    _check_gets_events(body)
    tenant_id = owner_id(query.get("tenant_id"))
    return service.with_secret(*service.create(**body, tenant_id=tenant_id, actor=current_actor()))


@blp.get("/<endpoint_id>")
@requires(Permission.EVENTS_READ)
@blp.response(200, schemas.WebhookEndpointSchema, includes=INCLUDES)
def get(endpoint_id: str) -> WebhookEndpoint:
    """Get a webhook endpoint, without its secret."""
    return service.get_endpoint(endpoint_id)


@blp.patch("/<endpoint_id>")
@requires(Permission.EVENTS_WRITE)
@blp.arguments(schemas.WebhookEndpointUpdateSchema)
@blp.response(200, schemas.WebhookEndpointSchema)
@blp.raises(SecretsKeyMissing)
def update(body: dict[str, Json], endpoint_id: str) -> WebhookEndpoint:
    """Update a webhook endpoint; `is_active=true` enables one that was disabled.

    Another `url` or other `types` also need `events:read`.
    """
    endpoint = service.update_endpoint(endpoint_id, body, actor=current_actor())
    _check_gets_events(body)
    return endpoint


@blp.delete("/<endpoint_id>")
@requires(Permission.EVENTS_WRITE)
@blp.response(204)
def delete(endpoint_id: str) -> None:
    """Delete a webhook endpoint; nothing is delivered to it any more."""
    service.delete(endpoint_id, actor=current_actor())


@blp.post("/<endpoint_id>/rotate")
@requires(Permission.EVENTS_WRITE)
@blp.response(200, schemas.WebhookEndpointSecretSchema, shown_once=("secret",))
@blp.raises(SecretsKeyMissing)
def rotate(endpoint_id: str) -> SimpleNamespace:
    """Replace the secret; the old one also signs for 24 hours.

    Until then each delivery has a signature of each. Of several old ones, the last four sign. Only this answer shows the new secret.
    """
    return service.with_secret(*service.rotate(endpoint_id, actor=current_actor()))


def _check_gets_events(body: dict[str, Json]) -> None:
    """Raise PermissionDenied if the credential may not read events but sets a URL or types."""
    if not {"url", "types"}.isdisjoint(body):
        current_principal().check(Permission.EVENTS_READ)


add_history(blp, "/<endpoint_id>", "webhook_endpoint", service.get_endpoint)
