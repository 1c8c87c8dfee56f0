"""/v1/identity."""

from __future__ import annotations

from typing import Any

from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.pagination import PageQuerySchema
from app.identity_sync import waiting
from app.identity_sync.schemas import WaitingSchema

blp = Blueprint(
    "identity", __name__, url_prefix="/v1/identity", description="What the identity provider sent."
)


@blp.get("/waiting")
@requires(Permission.SUPERADMIN)
@blp.arguments(PageQuerySchema, location="query")
@blp.columns("kind", "source", "object_id", "organization_id", "user_id", "since", "missing")
@blp.response(200, WaitingSchema(many=True))
def list_waiting(query: dict[str, Any]) -> Page:
    """List what waits for its organization or user, and people without a membership.

    Filters by time compare with `since`.
    """
    return waiting.list_waiting(query["paging"])


BLUEPRINTS = (blp,)
