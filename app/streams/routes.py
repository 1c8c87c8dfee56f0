"""Event streams, and GET /v1/events?wait= of the stream process.

The web processes have the streams only to describe them, and answer 421.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, current_app

from app.access import snapshot
from app.auth.guard import Requires, current_principal, requires
from app.auth.permissions import Permission
from app.auth.proofs import granted
from app.auth.tenant_choice import TenantOrOwnSchema, target_id
from app.config import current_config
from app.core.db.queries import id_or_none, visible_id
from app.core.errors import AppError, NotFound
from app.core.http import parser
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import Endpoint, Guarded, reads_primary
from app.core.http.rate_limit import IS_COUNTED
from app.core.http.request import Request, current_request
from app.core.json_text import Json
from app.events.service import FIND_FEED, PositionGone, list_events
from app.flags.evaluation import fingerprint
from app.streams.hub import EXTENSION, Hub, StreamsFull, TooManyStreams, check_room
from app.streams.schemas import FeedStreamQuerySchema, FlagStreamQuerySchema, LastEventSchema
from app.streams.stream import PAGE, AccessStream, FeedStream, FlagStream, Stream, WaitingRead

flags = Blueprint(
    "flag_streams", __name__, url_prefix="/ofrep/v1/events", description="Streams of changes."
)
feed = Blueprint(
    "event_streams", __name__, url_prefix="/v1/events/stream", description="The feed as a stream."
)
access = Blueprint(
    "access_streams", __name__, url_prefix=snapshot.STREAM, description="Streams of changes."
)
BLUEPRINTS = (flags, access, feed)
STREAM: dict[str, Any] = {
    "description": "Server-sent events, until one side closes the connection.",
    "content_type": "text/event-stream",
}
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # nginx must not buffer


class NotStreamProcess(AppError):
    """A web process was asked; ``STREAM_URL`` or the proxy's rule is missing."""

    status = 421
    code = "not_stream_process"
    detail = "Only the stream process answers this."


class RequiresGrant(Requires):
    """Decorator: as ``requires``. Without an ``Authorization`` header, ``?grant=`` counts."""

    def enter(self, request: Request) -> None:
        query = parser.query_values(request)  # the tenant is the one that the view reads
        grant, tenant_id = query.get("grant"), query.get("tenant_id")
        if grant and "Authorization" not in request.headers:
            chosen, found = id_or_none(tenant_id or ""), FIND_FEED.first()
            if chosen is not None and found is not None:
                request.proof = granted(grant, chosen, found.cursor_key)
        super().enter(request)


FLAGS_READ = RequiresGrant(Permission.FLAGS_READ, while_suspended=True)
ACCESS_READ = requires(Permission.ACCESS_READ)
EVENTS_READ = requires(Permission.EVENTS_READ)


@flags.get("")
@FLAGS_READ
@flags.arguments(FlagStreamQuerySchema, location="query")
@flags.arguments(LastEventSchema, location="headers")
@flags.response(200, **STREAM)
@flags.raises(NotFound.of("tenant"), NotStreamProcess, StreamsFull, TooManyStreams)
@reads_primary
def get_flag_stream(query: dict[str, Json], headers: dict[str, Json]) -> Response:
    """Stream that a tenant's flags have changed (OFREP).

    Each event is a `refetchEvaluation` with the new `etag`; ask for all flags again. The first one
    comes at once, unless `Last-Event-ID` names the present flags. `eventStreams` of the answer for all
    flags has the address, with a `grant` that stands for the credential.
    """
    tenant_id = target_id(query["tenant_id"])
    current = fingerprint(tenant_id)
    place = _place(FLAGS_READ, tenant_id)
    return _answer(FlagStream(*place, fingerprint=current, last_id=headers.get("last_event_id")))


@access.get("")
@ACCESS_READ
@access.arguments(TenantOrOwnSchema, location="query")
@access.arguments(LastEventSchema, location="headers")
@access.response(200, **STREAM)
@access.raises(NotFound.of("tenant"), NotStreamProcess, StreamsFull, TooManyStreams)
@reads_primary
def get_access_stream(query: dict[str, Json], headers: dict[str, Json]) -> Response:
    """Stream that the decisions of a tenant may have changed.

    Each event is a `refetchSnapshot` with the new `etag`; ask for `GET /v1/access/snapshot` again. The
    first one comes at once, unless `Last-Event-ID` names the present snapshot.
    """
    tenant_id = target_id(query["tenant_id"])
    current = snapshot.fingerprint(tenant_id)
    place = _place(ACCESS_READ, tenant_id)
    return _answer(AccessStream(*place, fingerprint=current, last_id=headers.get("last_event_id")))


@feed.get("")
@EVENTS_READ
@feed.arguments(FeedStreamQuerySchema, location="query")
@feed.arguments(LastEventSchema, location="headers")
@feed.response(200, **STREAM)
@feed.raises(NotFound.of("tenant"), PositionGone, NotStreamProcess, StreamsFull, TooManyStreams)
@reads_primary
def get_event_stream(query: dict[str, Json], headers: dict[str, Json]) -> Response:
    """Stream the events after a position, oldest first.

    The `id` of each is its position, its `data` the event as `GET /v1/events` shows it. A client that
    comes back with the last `id` as `Last-Event-ID` misses no event and sees none twice.
    """
    place = _place(EVENTS_READ, _shown(query.get("tenant_id")))
    cursor = headers.get("last_event_id") or query.get("cursor")
    types = query.get("types")
    first = list_events(cursor, types=types, tenant_id=query.get("tenant_id"), limit=PAGE)
    return _answer(FeedStream(*place, types=types, first=first))


def waiting(listing: Endpoint, hub: Hub) -> Guarded:
    """The operation ``GET /v1/events``, which waits up to ``?wait=`` seconds for an event.

    It reads in one transaction, and reads again in another one after an event.
    """

    def list_or_wait() -> Response:
        position = hub.position
        answer = listing()
        if "Retry-After" not in answer.headers:  # it has events, or must not wait
            return answer
        (query,) = parser.read(listing, current_request())
        place = _place(EVENTS_READ, _shown(query.get("tenant_id")))
        WaitingRead(*place).wait(query["wait"], query.get("types"), position)
        current_request().environ[IS_COUNTED] = True  # by the first reading
        answer = listing()
        answer.headers.pop("Retry-After", None)
        return answer

    return Guarded(list_or_wait, listing.access)


def _shown(tenant_id: UUID | None) -> UUID | None:
    """The tenant whose events are shown, None for all; raises NotFound."""
    return current_principal().tenant_id if tenant_id is None else visible_id(tenant_id)


def _place(access: Requires, tenant_id: UUID | None) -> tuple[Hub, Requires, UUID | None]:
    """The first arguments of a stream; raises an error where it may not be opened."""
    hub: Hub | None = current_app.extensions.get(EXTENSION)  # None in a web process
    if hub is None:
        url = current_config().stream_url
        raise NotStreamProcess(url and f"{NotStreamProcess.detail} Its address is {url}.")
    check_room(hub, tenant_id)
    return hub, access, tenant_id


def _answer(stream: Stream) -> Response:
    return Response(stream.frames(), content_type="text/event-stream", headers=HEADERS)
