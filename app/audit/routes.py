"""/v1/audit-events."""

from __future__ import annotations

from typing import Any

from app.audit import service
from app.audit.schemas import AuditEventSchema, AuditQuerySchema
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint

FILTERS = ("target_type", "target_id", "actor", "action")

blp = Blueprint(
    "audit", __name__, url_prefix="/v1/audit-events", description="Who changed what, and when."
)


@blp.get("")
@requires(Permission.AUDIT_READ)
@blp.arguments(AuditQuerySchema, location="query")
@blp.response(200, AuditEventSchema(many=True))
def list_events(query: dict[str, Any]) -> Page:
    """List recorded changes, oldest first."""
    filters = {name: query.pop(name) for name in FILTERS if name in query}
    return service.list_events(filters=filters, **query)


BLUEPRINTS = (blp,)
