"""/v1/tenants/{id}/changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.audit.includes import ACTORS_NAME, TARGETS_NAME
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.history import differences, schemas

blp = Blueprint("history", __name__, url_prefix="/v1/tenants", description="A tenant's past.")


@blp.get("/<tenant_id>/changes")
@requires(Permission.AUDIT_READ)
@blp.arguments(schemas.ChangesQuerySchema, location="query")
@blp.columns(
    "last_at", "target_type", "target_name", "target_id", "actor_name", "actors", "changes"
)
@blp.response(200, schemas.ChangedRowSchema(many=True), includes=(ACTORS_NAME, TARGETS_NAME))
@blp.raises(differences.TooManyChanges)
def list_changes(query: dict[str, Json], tenant_id: str) -> Sequence[Any]:
    """List what has changed in a tenant between two moments, one entry for each row."""
    return differences.list_changes(tenant_id, query["since"], query.get("until"))


BLUEPRINTS = (blp,)
