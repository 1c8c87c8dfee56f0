"""/v1/events."""

from __future__ import annotations

from typing import Any

from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.errors import NotFound
from app.core.http.blueprint import Blueprint
from app.core.json_text import Json
from app.events import service
from app.events.schemas import EventSchema, FeedQuerySchema

blp = Blueprint(
    "events", __name__, url_prefix="/v1/events", description="What changed, in one order."
)


@blp.get("")
@requires(Permission.EVENTS_READ)
@blp.arguments(FeedQuerySchema, location="query")
@blp.columns("position", "timestamp", "type", "tenant_id", "actor", "id")
@blp.response(200, EventSchema(many=True))
@blp.raises(service.PositionGone, NotFound.of("tenant"))
def list_events(
    query: dict[str, Json],
) -> service.FeedPage | tuple[service.FeedPage, dict[str, str]]:
    """List the events after a position, oldest first.

    Read again with `after` set to `next_cursor`, which is never null: so no event is missed,
    however late it was committed, and none comes twice. A tenant's credential reads the events of
    its tenant; those of plans and of e-mail are the platform's. Events are kept for `EVENT_DAYS`;
    a position whose following events are gone is refused (410), with the `oldest` position.
    """
    waits = query.pop("wait") > 0
    page = service.list_events(**query)
    return (page, {"Retry-After": "1"}) if waits and not page.items else page


@blp.get("/<evt_id>")
@requires(Permission.EVENTS_READ)
@blp.response(200, EventSchema)
def get_event(evt_id: str) -> Any:
    """Get an event."""
    return service.get_event(evt_id)


BLUEPRINTS = (blp,)
