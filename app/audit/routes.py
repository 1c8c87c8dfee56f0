"""/v1/audit-events, and the history of a resource below its own path."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast
from urllib.parse import urlencode

from flask import Response, request

from app.audit import history, schemas, service
from app.audit.includes import ACTORS_NAME, TARGETS_NAME, TENANT
from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.csv_text import as_csv
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.parser import query_values
from app.core.json_text import Json
from app.core.openapi.descriptions import noun

blp = Blueprint(
    "audit", __name__, url_prefix="/v1/audit-events", description="Who changed what, and when."
)
INCLUDES = (TENANT, ACTORS_NAME, TARGETS_NAME)
CSV = {
    "description": "One line for each change, below a line of the columns' names.",
    "headers": {
        "Link": {
            "description": 'The next page, with `rel="next"`; absent on the last one.',
            "schema": {"type": "string"},
        }
    },
    "content": {"text/csv": {"schema": {"type": "string"}}},
}


@blp.get("")
@requires(Permission.AUDIT_READ)
@blp.arguments(schemas.AuditQuerySchema, location="query")
@blp.columns(
    "created_at",
    "tenant.slug",
    "action",
    "target_name",
    "target_id",
    "actor_name",
    "actor",
    "changes",
)
@blp.response(200, schemas.AuditEventSchema(many=True), includes=INCLUDES)
def list_events(query: dict[str, Json]) -> Page:
    """List recorded changes."""
    return service.list_events(**query)


@blp.get("/csv")
@requires(Permission.AUDIT_READ)
@blp.arguments(schemas.AuditCsvQuerySchema, location="query")
@blp.doc(responses={"200": CSV})
def list_events_as_csv(query: dict[str, Json]) -> Response:
    """List recorded changes as CSV, for spreadsheets.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    page = service.list_events(**query)
    schema = schemas.AuditEventSchema(many=True)
    text = as_csv(schema.fields, schema.dump(page.items))
    response = Response(text, content_type="text/csv; charset=utf-8")
    if page.next_cursor is not None:
        values = urlencode({**query_values(request), "cursor": page.next_cursor})
        response.headers["Link"] = f'<{request.path}?{values}>; rel="next"'
    response.add_etag()
    return cast("Response", response.make_conditional(request))


def add_history(
    blueprint: Blueprint,
    rule: str,
    target_type: str,
    get_row: Callable[[str], object],
    *,
    platform_only: bool = False,
) -> None:
    """Add ``GET <rule>/history`` to the blueprint of a resource; ``rule`` has one path parameter.

    ``get_row`` must raise NotFound for an id that the caller cannot see.
    """

    @blueprint.get(f"{rule}/history")
    @requires(Permission.AUDIT_READ, platform_only=platform_only)
    @blueprint.arguments(schemas.HistoryQuerySchema, location="query")
    @blueprint.doc(
        summary=f"List the changes of one {noun(target_type)}, newest first, also of a deleted one."
    )
    @blueprint.columns("created_at", "action", "actor_name", "actor", "changes")
    @blueprint.response(200, schemas.HistoryEntrySchema(many=True))
    def list_history(query: dict[str, Json], **path: str) -> Page:
        """List the changes of one row, newest first."""
        (row_id,) = path.values()
        page = history.list_history(target_type, row_id, query["paging"])
        if not page.items:
            get_row(row_id)
        return page


BLUEPRINTS = (blp,)
