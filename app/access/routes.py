"""/v1/access."""

from __future__ import annotations

from flask import Response

from app.access import authzen, service, snapshot
from app.access.schemas import AccessQuerySchema, ExplanationSchema
from app.access.service import Explanation
from app.access.snapshot_schemas import SnapshotSchema
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core import json_text
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import has_past, reads_primary
from app.core.http.request import current_request
from app.core.json_text import Json

blp = Blueprint(
    "access", __name__, url_prefix="/v1/access", description="Why a request is allowed or refused."
)


@blp.get("/explain")
@requires(Permission.AUDIT_READ)
@has_past
@blp.arguments(AccessQuerySchema, location="query")
@blp.response(200, ExplanationSchema)
@blp.raises(NotFound.of("user"), NotFound.of("tenant"), NotFound.of("api_key"))
@reads_primary
def explain(query: dict[str, Json]) -> Explanation:
    """Explain whether a person or an API key has a permission, step by step.

    All steps are shown, also those after the one that decides. The token's signature, issuer,
    audience and times are not part of it. OFREP does not refuse a suspended tenant,
    everything else does. A tenant's credential can ask about its own tenant only, and it does not learn
    who is a platform superadmin.

    A permission of the product, and any on a resource, is explained as AuthZEN decides it.
    """
    return service.explain(**query)


@blp.get("/snapshot")
@requires(Permission.ACCESS_READ)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.response(200, SnapshotSchema)
@blp.raises(NotFound.of("tenant"), snapshot.SnapshotTooLarge)
@reads_primary
def get_snapshot(query: dict[str, Json]) -> Response:
    """Get all that the decisions of a tenant need, to decide in memory.

    `Access` of the [client packages](../guides/clients.md#access-in-memory) does this. Answers 304 if
    `If-None-Match` has the ETag of an equal snapshot. `stream` tells when to ask again.
    """
    tenant_id = target_id(query.get("tenant_id"))
    tag = snapshot.fingerprint(tenant_id)
    response = Response(content_type="application/json")
    if current_request().if_none_match.contains_weak(tag):
        response.status_code = 304
    else:
        response.data = json_text.dumps({"data": snapshot.snapshot(tenant_id)})
    response.set_etag(tag)
    response.cache_control.private = True
    response.cache_control.no_cache = True
    return response


BLUEPRINTS = (blp, authzen.blp, authzen.metadata)
