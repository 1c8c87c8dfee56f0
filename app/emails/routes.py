"""The lists of e-mail events and messages, and the suppression list."""

from __future__ import annotations

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.emails import schemas, service, suppressions

blp = Blueprint(
    "emails",
    __name__,
    url_prefix="/v1/app-communications",
    description="Events of sent e-mail, reported by its provider, and the suppression list.",
)


@blp.get("/email-events")
@requires(Permission.WEBHOOKS_READ, platform_only=True)
@blp.arguments(schemas.EmailEventQuerySchema, location="query")
@blp.columns("occurred_at", "source", "kind", "recipient", "message_id", "reason")
@blp.response(200, schemas.EmailEventSchema(many=True))
def list_events(query: dict[str, Json]) -> Page:
    """List e-mail events."""
    return service.list_events(**query)


@blp.get("/email-messages")
@requires(Permission.WEBHOOKS_READ, platform_only=True)
@blp.arguments(schemas.EmailMessageQuerySchema, location="query")
@blp.response(200, schemas.EmailMessageSchema(many=True))
def list_messages(query: dict[str, Json]) -> Page:
    """List the state of each message for each recipient.

    The state is the highest that was reported, in any order: complained, bounced, delivered,
    rejected, soft_bounced, deferred, sent, scheduled.
    """
    return service.list_messages(**query)


@blp.get("/suppressions")
@requires(Permission.WEBHOOKS_READ, platform_only=True)
@blp.arguments(schemas.SuppressionQuerySchema, location="query")
@blp.columns("address", "cause", "scope", "source", "suppressed_at")
@blp.response(200, schemas.SuppressionSchema(many=True))
def list_suppressions(query: dict[str, Json]) -> Page:
    """List the addresses that no e-mail may be sent to, with the causes."""
    return suppressions.list_active(**query)


@blp.delete("/suppressions/<path:address>")
@requires(Permission.WEBHOOKS_WRITE, platform_only=True)
@blp.response(204)
def lift_suppression(address: str) -> None:
    """Remove an address from the suppression list."""
    suppressions.lift(address, actor=current_actor())


BLUEPRINTS = (blp,)
