"""Requests and answers of /v1/log-streams."""

from __future__ import annotations

from typing import Any

from app.audit.schemas import OwnerId
from app.core.errors import Invalid
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Choice,
    JsonObject,
    ListOf,
    Literal,
    Str,
    Uuid,
)
from app.core.validation.messages import refused
from app.core.validation.schemas import AnswerSchema, AttributedSchema, Schema
from app.log_streams.kinds import KINDS
from app.log_streams.models import LogFormat, LogStreamState
from app.webhooks.endpoints.schemas import TYPES, TypePattern

CONFIG = "The settings of the kind. " + " ".join(
    f"`{name}`: {', '.join(f'`{field}`' for field in kind.schema().fields)}."
    for name, kind in KINDS.items()
)
SETTINGS = {
    "description": CONFIG,
    "x-kinds": {
        name: [
            {**one.metadata, "name": key, "required": one.required, "secret": key in kind.secrets}
            for key, one in kind.schema().fields.items()
        ]
        for name, kind in KINDS.items()
    },
}


class Start(AnyJson):
    """A place in the feed: a text, or a datetime."""

    keywords = {
        "description": "Where in the feed to begin: `now`, `beginning` (the oldest event that is"
        " left), the `position` of an event, after which the stream goes on, or a time (RFC 3339)"
        " that is not in the future, with some events before it.",
        "anyOf": [{"type": "string"}, {"type": "integer"}],
        "examples": ["beginning"],
    }

    def from_json(self, value: object) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Invalid(refused("string_type", (), value))
        is_time = ":" in str(value)  # no position contains it
        return AwareDateTime().from_json(value) if is_time else str(value)


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "kind": "https",
        "config": {"url": "https://logs.example.com/ingest"},
        "types": ["*"],
        "description": "SIEM",
        "error": None,
        "last_error": None,
        "test_error": None,
        "last_object": "2026/01/31/120000.000000-1234",
        "last_position": "1234",
        "state": "active",
    }
    descriptions = {
        "kind": "What the target is.",
        "description": "What the stream is for; for people.",
        "format": "How a record is written; `native`: as in the feed, `ocsf`: as OCSF 1.4.0.",
    }


class LogStreamSchema(Documented, AttributedSchema):
    """A log stream, without its secrets."""

    tenant_id = OwnerId(
        nullable=True, description="Null for a stream of the platform, which gets all events."
    )
    kind = Literal(*KINDS)
    config = JsonObject(description=f"{CONFIG} Secret ones are not shown.")
    format = Choice(LogFormat)
    types = ListOf(Str(), description="Which events are written.")
    description = Str()
    state = Choice(
        LogStreamState,
        description="`error`: the last attempts failed, and there are further ones, at least every"
        " hour. `invalid`: the target refused, or events are gone; `resume` it after a correction.",
    )
    error = Str(nullable=True, description="Why the state is `error` or `invalid`.")


class LogStreamProgressSchema(AnswerSchema, Documented):
    """How far a stream has come."""

    written_until = AwareDateTime(description="All events before this time are written.")
    written_at = AwareDateTime(nullable=True, description="When the last batch was written.")
    last_object = Str(nullable=True, description="The name of the last batch.")
    last_position = Str(nullable=True, description="The position of the last record.")
    last_error = Str(nullable=True, description="Why the last attempt failed; null: it did not.")
    next_attempt_at = AwareDateTime(nullable=True, description="When the next attempt is due.")
    tested_at = AwareDateTime(nullable=True, description="When the last test ended.")
    test_error = Str(nullable=True, description="Why the last test failed; null: it did not.")


class LogStreamUpdateSchema(Documented):
    """The fields to change. ``config`` replaces all settings, so it needs the secrets again."""

    config = JsonObject(description=CONFIG)
    format = Choice(LogFormat)
    types = ListOf(TypePattern(), metadata=TYPES)
    description = Str(max_length=1_000)


class LogStreamRewindSchema(Documented):
    """Where to go on."""

    start = Start(data_key="from", required=True)


class LogStreamCreateSchema(LogStreamUpdateSchema):
    """A new log stream."""

    kind = Literal(*KINDS, required=True)
    config = JsonObject(required=True, metadata=SETTINGS)
    format = Choice(LogFormat, load_default=LogFormat.NATIVE)
    types = ListOf(TypePattern(), load_default=lambda: ["*"], metadata=TYPES)
    start = Start(data_key="from", load_default="now")
    state = Literal(
        "active", "paused", load_default="active", description="`paused`, to test it first."
    )


class LogStreamQuerySchema(PageQuerySchema):
    """Filters of the list of log streams."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    state = Choice(LogStreamState, description="Only streams in this state.")
