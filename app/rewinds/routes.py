"""/v1/tenants/{id}/rewind and /v1/rewinds."""

from __future__ import annotations

from typing import Any

from app.audit.includes import TENANT
from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.rewinds import schemas, service
from app.tenants.service import TenantDeleting

blp = Blueprint("rewinds", __name__, url_prefix="/v1", description="Going back in time.")


@blp.post("/tenants/<tenant_id>/rewind")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.RewindCreateSchema)
@blp.alt_response(200, schema=schemas.RewindDetailSchema, description="The preview.")
@blp.response(202, schemas.RewindDetailSchema)
@blp.raises(service.RewindRunning, TenantDeleting)
def create(body: dict[str, Json], tenant_id: str) -> tuple[Any, int, dict[str, str]]:
    """Make a tenant's rows again what they were at an earlier moment; by default a preview.

    With `dry_run=false` a job makes the changes, each by its ordinary rules, audited and with its
    event. A row whose change is refused stays as it is, and is listed in `left_out`. Deleted rows
    come back with their ids; users, memberships and subscriptions created since are deactivated or
    cancelled, other rows created since are deleted. Erased people, revoked keys, ended sessions,
    counts of usage and what a billing provider or a directory decides do not come back. `If-Match`
    is compared with the tenant.
    """
    if body.pop("dry_run"):
        return service.preview(tenant_id, body, actor=current_actor()), 200, {}
    made = service.create(tenant_id, body, actor=current_actor())
    return made, 202, {"Location": f"/v1/rewinds/{made.id}"}


@blp.get("/rewinds")
@requires(Permission.SUPERADMIN)
@blp.arguments(schemas.RewindQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "created_at", "state", "position", "done", "left_out_total")
@blp.response(200, schemas.RewindSchema(many=True), includes=(TENANT,))
def list_rewinds(query: dict[str, Json]) -> Page:
    """List rewinds."""
    return service.list_rewinds(query.pop("paging"), **query)


@blp.get("/rewinds/<rewind_id>")
@requires(Permission.SUPERADMIN)
@blp.response(200, schemas.RewindDetailSchema)
def get_rewind(rewind_id: str) -> Any:
    """Get a rewind with its progress, and the first 1,000 rows that it left out."""
    return service.get_rewind(rewind_id)


BLUEPRINTS = (blp,)
