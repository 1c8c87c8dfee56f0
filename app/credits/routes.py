"""/v1/credits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import target_id
from app.core.clock import utcnow
from app.core.db.pages import Page
from app.core.errors import Invalid, NotFound, value_error
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import reads_primary
from app.core.json_text import Json
from app.credits import schemas, service
from app.tenants.lookup import take_target_id

blp = Blueprint(
    "credits", __name__, url_prefix="/v1/credits", description="Balances that limits are paid from."
)
BLUEPRINTS = (blp,)


@blp.get("")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.CreditBalanceQuerySchema, location="query")
@blp.columns("feature", "balance", "held", "next_grant_at")
@blp.response(200, schemas.CreditBalanceSchema(many=True))
@reads_primary
def list_credits(query: dict[str, Json]) -> Sequence[Any]:
    """List a tenant's balances of credits, now or at a time in the past."""
    tenant_id, at = target_id(query.pop("tenant_id", None)), query.pop("at", None)
    if at is None:
        return service.list_balances(tenant_id, **query, actor=current_actor())
    if at > utcnow():
        raise Invalid(value_error(["query", "at"], "must be in the past", at.isoformat()))
    return service.list_past_balances(tenant_id, at, **query)


@blp.get("/entries")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.CreditEntryQuerySchema, location="query")
@blp.columns("number", "at", "feature", "kind", "amount", "balance", "reason")
@blp.response(200, schemas.CreditEntrySchema(many=True))
def list_entries(query: dict[str, Json]) -> Page:
    """List a tenant's ledger of credits, the newest entry first."""
    return service.list_entries(query.pop("tenant_id", None) or target_id(), **query)


@blp.post("/grants")
@requires(Permission.USAGE_WRITE, platform_only=True)
@blp.arguments(schemas.CreditGrantSchema)
@blp.response(201, schemas.CreditLotSchema)
@blp.raises(NotFound.of("tenant"))
def grant(body: dict[str, Json]) -> Any:
    """Grant credits to a tenant, as a lot of their own.

    All grants of a feature that have not expired can have at most 10^18 credits, and at most 1000
    lots have credits left.
    """
    return service.grant(take_target_id(body), **body, actor=current_actor())


@blp.get("/grants")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.CreditGrantQuerySchema, location="query")
@blp.columns("id", "feature", "source", "granted", "remaining", "starts_at", "expires_at")
@blp.response(200, schemas.CreditLotSchema(many=True))
def list_grants(query: dict[str, Json]) -> Page:
    """List a tenant's lots of credits, also those that are used up, have expired or start later."""
    return service.list_lots(query.pop("tenant_id", None) or target_id(), **query)


@blp.get("/grants/<lot_id>")
@requires(Permission.USAGE_READ)
@blp.response(200, schemas.CreditLotSchema)
@blp.raises(NotFound.of("lot"))
def get_grant(lot_id: str) -> Any:
    """Get a lot of credits, also one that is used up or has expired."""
    return service.get_lot(lot_id)


@blp.post("/grants/<lot_id>/revoke")
@requires(Permission.USAGE_WRITE, platform_only=True)
@blp.arguments(schemas.CreditRevokeSchema)
@blp.response(200, schemas.CreditRevocationSchema)
@blp.raises(NotFound.of("lot"))
def revoke(body: dict[str, Json], lot_id: str) -> Any:
    """Take back credits of a lot: at most what is left of it.

    What was used stays used, and what holds have taken stays held.
    """
    return service.revoke(lot_id, **body, actor=current_actor())
