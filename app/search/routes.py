"""/v1/search."""

from __future__ import annotations

from app.auth.guard import current_principal, requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.search import service
from app.search.models import EntityType
from app.search.schemas import SearchQuerySchema, SearchResultSchema

blp = Blueprint(
    "search",
    __name__,
    url_prefix="/v1/search",
    description="One search for tenants, people, subscriptions and e-mail messages.",
)

READ = {
    EntityType.TENANT: Permission.TENANTS_READ,
    EntityType.USER: Permission.USERS_READ,
    EntityType.SUBSCRIPTION: Permission.BILLING_READ,
    EntityType.EMAIL_MESSAGE: Permission.WEBHOOKS_READ,
}
"""The permission to read each type. No tenant's credential has that of e-mail messages."""


@blp.get("")
@requires(Permission.TENANTS_READ)
@blp.arguments(SearchQuerySchema, location="query")
@blp.columns("id", "type", "title", "subtitle", "tenant.slug")
@blp.response(200, SearchResultSchema(many=True))
def find(query: dict[str, Json]) -> list[dict[str, object]]:
    """Find rows by a word or an id: tenants, users, subscriptions and e-mail messages.

    The best matches come first: exact before prefix, active before ended. Users also need
    `users:read`, subscriptions `billing:read`, e-mail messages `webhooks:read`; without it they are
    left out.
    """
    principal = current_principal()
    return service.search(
        query["q"],
        entity_types=[one for one in query.get("types", EntityType) if principal.has(READ[one])],
        tenant_id=query.get("tenant_id"),
        limit=query["limit"],
    )


BLUEPRINTS = (blp,)
