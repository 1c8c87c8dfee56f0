"""/v1/audit-events, and the history of a resource below its own path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.audit import history, service
from app.audit.includes import ACTORS_NAME
from app.audit.schemas import (
    AuditEventSchema,
    AuditQuerySchema,
    HistoryEntrySchema,
    HistoryQuerySchema,
)
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.includes import TENANT

blp = Blueprint(
    "audit", __name__, url_prefix="/v1/audit-events", description="Who changed what, and when."
)
INCLUDES = (TENANT, ACTORS_NAME)


@blp.get("")
@requires(Permission.AUDIT_READ)
@blp.arguments(AuditQuerySchema, location="query")
@blp.response(200, AuditEventSchema(many=True), includes=INCLUDES)
def list_events(query: dict[str, Any]) -> Page:
    """List recorded changes."""
    paging, tenant_id = query.pop("paging"), query.pop("tenant_id", None)
    return service.list_events(paging, tenant_id=tenant_id, filters=query)


def add_history(
    blueprint: Blueprint,
    rule: str,
    target_type: str,
    get_row: Callable[[str], Any],
    *,
    platform_only: bool = False,
) -> None:
    """Add ``GET <rule>/history`` to the blueprint of a resource; ``rule`` has one id.

    ``get_row`` raises NotFound for an id that the caller cannot see.
    """

    @blueprint.get(f"{rule}/history")
    @requires(Permission.AUDIT_READ, platform_only=platform_only)
    @blueprint.arguments(HistoryQuerySchema, location="query")
    @blueprint.response(200, HistoryEntrySchema(many=True))
    def list_history(query: dict[str, Any], **path: str) -> Page:
        """List the changes of this resource, newest first, also after its deletion."""
        (row_id,) = path.values()
        page = history.list_history(target_type, row_id, query["paging"])
        if not page.items:
            get_row(row_id)
        return page


BLUEPRINTS = (blp,)
