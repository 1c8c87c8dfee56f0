"""Deliveries: below /v1/webhook-endpoints/{endpoint_id}, and /v1/webhook-deliveries."""

from __future__ import annotations

from flask import current_app

from app.audit.includes import TENANT
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.pagination import PageQuerySchema
from app.core.json_text import Json
from app.webhooks.deliveries import schemas, service
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.deliveries.service import EndpointInactive, Recovery

of_endpoint = Blueprint(
    "webhook_endpoint_deliveries",
    __name__,
    url_prefix="/v1/webhook-endpoints",
    description="What was delivered to an endpoint.",
)
blp = Blueprint(
    "webhook_deliveries",
    __name__,
    url_prefix="/v1/webhook-deliveries",
    description="Single deliveries.",
)
BLUEPRINTS = (of_endpoint, blp)


@of_endpoint.get("/<endpoint_id>/deliveries")
@requires(Permission.EVENTS_READ)
@of_endpoint.arguments(schemas.WebhookDeliveryQuerySchema, location="query")
@of_endpoint.columns(
    "id",
    "created_at",
    "event_id",
    "type",
    "status",
    "attempts",
    "next_attempt_at",
    "response_code",
    "error",
)
@of_endpoint.response(200, schemas.WebhookDeliverySchema(many=True))
def list_deliveries(query: dict[str, Json], endpoint_id: str) -> Page:
    """List the deliveries of a webhook endpoint of the last 90 days."""
    return service.list_deliveries(endpoint_id, **query)


@of_endpoint.post("/<endpoint_id>/test")
@requires(Permission.EVENTS_WRITE)
@of_endpoint.arguments(schemas.TestEventSchema)
@of_endpoint.response(200, schemas.WebhookDeliverySchema)
@of_endpoint.raises(EndpointInactive)
def send_test(body: dict[str, Json], endpoint_id: str) -> WebhookDelivery:
    """Send an example event to a webhook endpoint, by one attempt.

    An endpoint that is `untested` gets it too. Its `data` is the documented example. The list of deliveries tells what came of it.
    """
    example = current_app.extensions["api"].webhook_example(body["type"])
    return service.send_test(endpoint_id, body["type"], example, actor=current_actor())


@of_endpoint.post("/<endpoint_id>/recover")
@requires(Permission.EVENTS_WRITE)
@of_endpoint.arguments(schemas.RecoverySchema)
@of_endpoint.response(200, schemas.RecoveredSchema)
@of_endpoint.raises(EndpointInactive)
def recover(body: dict[str, Json], endpoint_id: str) -> Recovery:
    """Deliver again what a webhook endpoint has missed since a time.

    These are its deliveries that failed or wait for another attempt, and the events of its types
    that it has no delivery of: they came while it was not active, or before it had the type. No
    event is older than the endpoint.
    """
    return service.recover(endpoint_id, body["since"], actor=current_actor())


@blp.get("/failed")
@requires(Permission.SUPERADMIN, platform_only=True)
@blp.arguments(PageQuerySchema, location="query")
@blp.columns(
    "id", "created_at", "tenant.slug", "endpoint_id", "type", "attempts", "response_code", "error"
)
@blp.response(200, schemas.WebhookDeliverySchema(many=True), includes=(TENANT,))
def list_failed(query: dict[str, Json]) -> Page:
    """List the deliveries of all tenants that have failed, of the last 90 days."""
    return service.list_failed(**query)


@blp.post("/<delivery>/resend")
@requires(Permission.EVENTS_WRITE)
@blp.response(200, schemas.WebhookDeliverySchema)
@blp.raises(EndpointInactive, NotFound.of("webhook_endpoint"))
def resend(delivery: str) -> WebhookDelivery:
    """Deliver an event again, whatever came of it before; its `webhook-id` stays the same."""
    return service.resend(delivery, actor=current_actor())
