"""/v1/usage/holds and /v1/usage/leases."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import target_id
from app.core import json_text
from app.core.db.pages import Page
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.tenants.lookup import take_target_id
from app.usage import hold_schemas as schemas
from app.usage import holds
from app.usage.hold_errors import HoldEnded, HoldExceeded
from app.usage.limits import LimitReached
from app.usage.models import HoldKind

blp = Blueprint(
    "usage_holds",
    __name__,
    url_prefix="/v1/usage/holds",
    description="Amounts of limits that are held until they are settled.",
)
leases = Blueprint(
    "usage_leases",
    __name__,
    url_prefix="/v1/usage/leases",
    description="Amounts of hard limits that a client uses without asking for each.",
)


@blp.post("")
@requires(Permission.USAGE_WRITE)
@blp.arguments(schemas.UsageHoldCreateSchema)
@blp.response(201, schemas.UsageHoldSchema)
@blp.raises(LimitReached, NotFound.of("tenant"))
def create(body: dict[str, Json]) -> Any:
    """Hold an amount of a limit, so that nothing else takes it before it is settled.

    More than is free of a hard limit is refused, and nothing is held. Soft and unlimited limits
    always hold. The hold belongs to the period in which it is made.
    """
    return holds.hold(take_target_id(body), **body)


@blp.get("")
@requires(Permission.USAGE_READ)
@blp.arguments(schemas.UsageHoldQuerySchema, location="query")
@blp.columns("id", "feature", "kind", "amount", "state", "counted", "over_by", "expires_at")
@blp.response(200, schemas.UsageHoldSchema(many=True))
def list_holds(query: dict[str, Json]) -> Page:
    """List a tenant's holds and leases. Those that ended 30 days ago are deleted."""
    tenant_id = query.pop("tenant_id", None) or target_id()
    return holds.list_holds(tenant_id, **query)


@blp.get("/<hold_id>")
@requires(Permission.USAGE_READ)
@blp.response(200, schemas.UsageHoldSchema)
@blp.raises(NotFound.of("hold"))
def get(hold_id: str) -> Any:
    """Get a hold or lease."""
    return holds.get_hold(hold_id)


@blp.post("/<hold_id>/settle")
@requires(Permission.USAGE_WRITE)
@blp.arguments(schemas.UsageHoldSettleSchema)
@blp.response(200, schemas.UsageHoldSchema)
@blp.raises(HoldExceeded, HoldEnded, NotFound.of("hold"))
def settle(body: dict[str, Json], hold_id: str) -> Any:
    """Count what was used of a hold, and end it; what was not used is free again.

    More than was held is counted if it fits. If it does not, what was held is counted, the hold ends,
    and the rest is refused (409 `limit_reached`), as `over_by`. A hold that has expired can be
    settled for 24 hours: what fits is counted, the rest is `over_by`, and `is_late` is true. The same
    amount again changes nothing.
    """
    return _answer(holds.settle(hold_id, **body, actor=current_actor()))


@blp.post("/<hold_id>/extend")
@requires(Permission.USAGE_WRITE)
@blp.arguments(schemas.UsageHoldExtendSchema)
@blp.response(200, schemas.UsageHoldSchema)
@blp.raises(HoldEnded, NotFound.of("hold"))
def extend(body: dict[str, Json], hold_id: str) -> Any:
    """Let an open hold expire `ttl_seconds` from now."""
    return holds.extend(hold_id, **body)


@blp.delete("/<hold_id>")
@requires(Permission.USAGE_WRITE)
@blp.response(204)
@blp.raises(HoldEnded, NotFound.of("hold"))
def release(hold_id: str) -> None:
    """End a hold of which nothing was used."""
    holds.release(hold_id, actor=current_actor())


@leases.post("")
@requires(Permission.USAGE_WRITE)
@leases.arguments(schemas.UsageLeaseCreateSchema)
@leases.response(201, schemas.UsageHoldSchema)
@leases.raises(LimitReached, NotFound.of("tenant"))
def create_lease(body: dict[str, Json]) -> Any:
    """Lend up to `amount` of a hard limit to a client, which then uses it without asking.

    If less is free, less is lent; if nothing is free, it is refused (409). The client reports what it
    has used. What a client that stopped did not report is free again when the lease expires.
    """
    lease = holds.hold(take_target_id(body), **body, kind=HoldKind.LEASE)
    return lease, {"Location": f"/v1/usage/holds/{lease.id}"}


@leases.put("/<lease_id>")
@requires(Permission.USAGE_WRITE)
@leases.arguments(schemas.UsageLeaseRenewSchema)
@leases.response(200, schemas.UsageHoldSchema)
@leases.raises(HoldExceeded, HoldEnded, NotFound.of("lease"))
def renew_lease(body: dict[str, Json], lease_id: str) -> Any:
    """Report what is used of a lease, and renew it.

    The use since the last report is counted. Of more than was lent, what fits is counted; if some does
    not fit, the lease ends, and the rest is refused (409 `limit_reached`), as `over_by`. A lease
    that has expired can be reported for 24 hours, as a hold, and ends then. A lease also ends with its
    period. The same report again changes nothing.
    """
    return _answer(holds.renew(lease_id, **body, actor=current_actor()))


def _answer(hold: Any) -> Any:
    """The hold; 409 if more was used than it had and than fitted, before it expired.

    No error is raised then, because what fitted is counted.
    """
    if hold.over_by == 0 or hold.is_late:
        return hold
    error = HoldExceeded(hold)
    return Response(json_text.dumps(error.body()), error.status, content_type="application/json")
