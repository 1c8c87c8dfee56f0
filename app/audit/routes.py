"""/v1/audit-events."""

from __future__ import annotations

from typing import Any

from app.audit import service
from app.audit.schemas import AuditEventSchema, AuditQuerySchema
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.includes import TENANT

blp = Blueprint(
    "audit", __name__, url_prefix="/v1/audit-events", description="Who changed what, and when."
)
INCLUDES = (TENANT,)


@blp.get("")
@requires(Permission.AUDIT_READ)
@blp.arguments(AuditQuerySchema, location="query")
@blp.response(200, AuditEventSchema(many=True), includes=INCLUDES)
def list_events(query: dict[str, Any]) -> Page:
    """List recorded changes."""
    paging, tenant_id = query.pop("paging"), query.pop("tenant_id", None)
    return service.list_events(paging, tenant_id=tenant_id, filters=query)


BLUEPRINTS = (blp,)
