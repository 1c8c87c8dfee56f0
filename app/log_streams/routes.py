"""/v1/log-streams."""

from __future__ import annotations

from typing import Any

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import OwnerChoiceSchema, owner_id
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.core.http.includes import by_id, columns_of, related
from app.core.validation.fields import Nested
from app.events.service import PositionGone
from app.log_streams import schemas, service
from app.log_streams.models import LogStream, LogStreamProgress
from app.log_streams.service import TooManyLogStreams
from app.webhooks.endpoints.encryption import SecretsKeyMissing

blp = Blueprint(
    "log_streams",
    __name__,
    url_prefix="/v1/log-streams",
    description="Targets to which events are written continuously.",
)
BLUEPRINTS = (blp,)
PROGRESS = related(
    "progress",
    Nested(schemas.LogStreamProgressSchema, description="How far the stream has come."),
    by_id(
        "log_stream_progress.find",
        LogStreamProgress.stream_id,
        *columns_of(LogStreamProgress, schemas.LogStreamProgressSchema),
    ),
    lambda row: row.id,
)
INCLUDES = (TENANT, HISTORY, PROGRESS)


@blp.get("")
@requires(Permission.LOG_STREAMS_READ)
@blp.arguments(schemas.LogStreamQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "kind", "types", "state", "error", "progress.test_error")
@blp.response(200, schemas.LogStreamSchema(many=True), includes=INCLUDES)
def list_streams(query: dict[str, Any]) -> Page:
    """List log streams."""
    return service.list_streams(**query)


@blp.post("")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.arguments(OwnerChoiceSchema, location="query")
@blp.arguments(schemas.LogStreamCreateSchema)
@blp.response(201, schemas.LogStreamSchema)
@blp.raises(TooManyLogStreams, SecretsKeyMissing, PositionGone)
def create(query: dict[str, Any], body: dict[str, Any]) -> LogStream:
    """Create a log stream.

    A tenant's stream gets the tenant's events, as the tenant reads them in the feed, but never
    the token of an invitation. Without `tenant_id`, and without an organization in the token, it is
    a stream of the platform, which gets the events of **all** tenants. Each can have 10 streams. A
    batch is written when it is full, and at least once a minute. Also needs `events:read`.
    """
    current_principal().check(Permission.EVENTS_READ)
    tenant_id = owner_id(query.get("tenant_id"))
    return service.create(**body, tenant_id=tenant_id, actor=current_actor())


@blp.get("/<stream_id>")
@requires(Permission.LOG_STREAMS_READ)
@blp.columns("progress.tested_at", "progress.test_error")
@blp.response(200, schemas.LogStreamSchema, includes=INCLUDES)
def get(stream_id: str) -> LogStream:
    """Get a log stream, without its secrets."""
    return service.get_stream(stream_id)


@blp.patch("/<stream_id>")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.arguments(schemas.LogStreamUpdateSchema)
@blp.response(200, schemas.LogStreamSchema)
@blp.raises(SecretsKeyMissing)
def update(body: dict[str, Any], stream_id: str) -> LogStream:
    """Update a log stream; it goes on at its place.

    Another `config` or other `types` also need `events:read`.
    """
    stream = service.update(stream_id, body, actor=current_actor())
    if not {"config", "types"}.isdisjoint(body):
        current_principal().check(Permission.EVENTS_READ)
    return stream


@blp.delete("/<stream_id>")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.response(204)
def delete(stream_id: str) -> None:
    """Delete a log stream; what it has written stays."""
    service.delete(stream_id, actor=current_actor())


@blp.post("/<stream_id>/test")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.response(202, schemas.LogStreamSchema)
def test(stream_id: str) -> LogStream:
    """Write a marked record soon, in the background, also while the stream is paused.

    This answer does not have the result. A few seconds later the log stream has it, with
    `include=progress`: when the test ended (`tested_at`), and why it failed (`test_error`; null if
    it did not). While a test is under way, no other starts.
    """
    return service.request_test(stream_id, actor=current_actor())


@blp.post("/<stream_id>/pause")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.response(200, schemas.LogStreamSchema)
def pause(stream_id: str) -> LogStream:
    """Write nothing until the stream is resumed.

    Events that it has not read are kept 7 days (`LOG_STREAM_DAYS`) longer than others.
    """
    return service.pause(stream_id, actor=current_actor())


@blp.post("/<stream_id>/resume")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.response(200, schemas.LogStreamSchema)
def resume(stream_id: str) -> LogStream:
    """Go on after the last event that was written, at once."""
    return service.resume(stream_id, actor=current_actor())


@blp.post("/<stream_id>/rewind")
@requires(Permission.LOG_STREAMS_WRITE)
@blp.arguments(schemas.LogStreamRewindSchema)
@blp.response(200, schemas.LogStreamSchema)
@blp.raises(PositionGone)
def rewind(body: dict[str, Any], stream_id: str) -> LogStream:
    """Go on at another place of the feed; events that were written before are written again."""
    current_principal().check(Permission.EVENTS_READ)
    return service.rewind(stream_id, **body, actor=current_actor())


add_history(blp, "/<stream_id>", "log_stream", service.get_stream)
