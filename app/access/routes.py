"""/v1/access."""

from __future__ import annotations

from app.access import authzen, service
from app.access.schemas import AccessQuerySchema, ExplanationSchema
from app.access.service import Explanation
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json

blp = Blueprint(
    "access", __name__, url_prefix="/v1/access", description="Why a request is allowed or refused."
)


@blp.get("/explain")
@requires(Permission.AUDIT_READ)
@blp.arguments(AccessQuerySchema, location="query")
@blp.response(200, ExplanationSchema)
@blp.raises(NotFound.of("user"), NotFound.of("tenant"), NotFound.of("api_key"))
def explain(query: dict[str, Json]) -> Explanation:
    """Explain whether a person or an API key has a permission, step by step.

    All steps are shown, also those after the one that decides. The token's signature, issuer,
    audience and times are not part of it. OFREP does not refuse a suspended tenant, every other
    endpoint does. A tenant's credential can ask about its own tenant only, and it does not learn
    who is a platform superadmin.
    """
    return service.explain(**query)


BLUEPRINTS = (blp, authzen.blp, authzen.metadata)
