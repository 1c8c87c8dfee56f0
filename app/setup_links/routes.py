"""/v1/setup-links."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from flask import request

from app.api_keys.service import get_key
from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.routing import own_address
from app.setup_links import schemas, service
from app.setup_links.service import SetupLinkState, TooManySetupLinks
from app.tenants.lookup import take_target_id

blp = Blueprint(
    "setup_links",
    __name__,
    url_prefix="/v1/setup-links",
    description="Links by which a customer's administrator, who needs no account, sets up what"
    " the customer's side has: directories, domains, webhook endpoints, log streams.",
)
BLUEPRINTS = (blp,)
INCLUDES = (TENANT, HISTORY)


@blp.get("")
@requires(Permission.TENANTS_READ)
@blp.arguments(schemas.SetupLinkQuerySchema, location="query")
@blp.columns(
    "id", "tenant.slug", "scopes", "contact", "state", "expires_at", "opened_at", "revoked_at"
)
@blp.response(200, schemas.SetupLinkSchema(many=True), includes=INCLUDES)
def list_links(query: dict[str, Any]) -> Page:
    """List setup links, ended ones included."""
    return service.list_links(**query)


@blp.post("")
@requires(Permission.TENANTS_WRITE)
@blp.arguments(schemas.SetupLinkCreateSchema)
@blp.response(201, schemas.SetupLinkCreatedSchema, shown_once=("url",))
@blp.raises(TooManySetupLinks, NotFound.of("tenant"))
def create(body: dict[str, Any]) -> SimpleNamespace:
    """Create a setup link; only this answer shows its URL.

    The URL opens the setup pages of one tenant in the first browser that continues there. It needs
    no account, so give it only to the customer's administrator. Each change is recorded with the
    actor `setup_link:<id>`.

    Also needs the permissions that the scopes exercise: `scim` needs `scim:read`, `scim:write`,
    `users:write` and `memberships:write`; `domains` needs `domains:read` and `domains:write`; `sso`
    needs `sso:read`; `webhook_endpoints` needs `events:read` and `events:write`; `log_streams` needs `events:read`,
    `log_streams:read` and `log_streams:write`. A tenant can have at most 20 links at a time.
    """
    principal = current_principal()
    link, token = service.create(
        take_target_id(body),
        body["scopes"],
        lifetime=timedelta(hours=body["expires_in_hours"]),
        contact=body.get("contact", ""),
        held=principal.permissions,
        held_until=get_key(principal.key_id).expires_at if principal.key_id else None,
        actor=principal.actor,
    )
    url = f"{own_address(request)}/console/setup/open?token={token}"
    return SimpleNamespace(**link._asdict(), state=SetupLinkState.UNOPENED, url=url)


@blp.get("/<setup_link_id>")
@requires(Permission.TENANTS_READ)
@blp.response(200, schemas.SetupLinkSchema, includes=INCLUDES)
def get(setup_link_id: str) -> object:
    """Get a setup link, without its URL."""
    return service.get_link(setup_link_id)


@blp.delete("/<setup_link_id>")
@requires(Permission.TENANTS_WRITE)
@blp.response(204)
def revoke(setup_link_id: str) -> None:
    """Revoke a setup link; its session ends at the next request. It stays in the list."""
    service.revoke(setup_link_id, actor=current_actor())


add_history(blp, "/<setup_link_id>", "setup_link", service.get_link)
