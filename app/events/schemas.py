"""Requests and answers of /v1/events, and how an event is written."""

from __future__ import annotations

from typing import Any

from app.audit.outbox import NO_SUCH_TYPE, types_of
from app.core import json_text
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.errors import Invalid, value_error
from app.core.http.pagination import ONE_TENANT
from app.core.json_text import Json
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Int,
    JsonObject,
    Literal,
    LiteralTrue,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, Schema
from app.events.catalogue import CATALOGUE
from app.events.positions import MAX_BYTES
from app.events.service import DEFAULT_LIMIT, MAX_LIMIT, PREFIX

MAX_WAIT = 20  # seconds
SHAPES = {name: kind.shape() for name, kind in CATALOGUE.items()}


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "id": f"{PREFIX}01936f2e7a3b7c1d9e4f2b6a8c0d1e2f",
        "type": "membership.role_changed",
        "slug": "acme-ltd",
        "idp_org_id": "org_01JZ4K",
        "actor": "platform:operator",
        "request_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "data": {"id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f", "role": "admin"},
        "changes": {"role": {"before": "member", "after": "admin"}},
        "after": "1234",
        "types": "membership.*,tenant.suspended",
    }


class EventTenantSchema(Documented, AnswerSchema):
    """The tenant that an event is about, with its present names."""

    slug = Str(description="The tenant's slug.")
    idp_org_id = Str()


class EventSchema(Documented, AnswerSchema):
    """What has changed, and the row after the change."""

    optional = ("data", "changes", "truncated")

    id = Str(description="The event's id; a delivery has it as `webhook-id`.")
    type = Literal(*CATALOGUE, description="What has happened.")
    timestamp = AwareDateTime(description="When it happened (UTC).")
    position = AnyJson(
        description="Where the event is in the feed: a number for platform credentials, which"
        " grows by one; an opaque text for those of a tenant. Give it as `after`.",
        metadata={
            "anyOf": [{"type": "integer", "format": "int64"}, {"type": "string"}],
            "examples": [1234],
        },
    )
    tenant_id = Uuid(
        nullable=True, description="Null for an event of the platform, as is `tenant`."
    )
    tenant = Nested(EventTenantSchema, nullable=True, description="The tenant's present names.")
    actor = Str(description="Who did it; tenants see `platform` for the platform's people.")
    request_id = Str()
    data = JsonObject(description="The resource after the change, as its GET answers it.")
    changes = JsonObject(
        description="`before` and `after` of each changed field; {} for a new resource."
    )
    truncated = LiteralTrue(
        description="Only where `data` and `changes` are absent: 20 KiB are exceeded."
    )

    def _dump_one(self, row: Any) -> dict[str, Json]:
        event = {
            "id": PREFIX + row.id.hex,
            "type": row.type,
            "timestamp": row.created_at,
            "position": row.position,
            "tenant_id": None if row.tenant_id == PLATFORM_TENANT_ID else row.tenant_id,
            "tenant": row.slug and {"slug": row.slug, "idp_org_id": row.idp_org_id},
            "actor": row.actor,
            "request_id": row.request_id,
        }
        if row.after is not None:
            complete = {**event, "data": _data(row), "changes": _changes(row)}
            if json_text.size(complete) <= MAX_BYTES:
                return complete
        return {**event, "truncated": True}


def _data(row: Any) -> Any:
    """The resource's Read shape; a column that the row did not have yet is written as empty."""
    shape, columns = SHAPES[row.type], row.after if row.data is None else row.data
    absent = dict.fromkeys(field.attribute or name for name, field in shape.fields.items())
    return shape.dump({**absent, **columns})


def _changes(row: Any) -> dict[str, Json]:
    """The changed fields; none for a row that is new or deleted."""
    return {
        name: {"before": old, "after": row.after[name]}
        for name, old in row.before.items()
        if name in row.after
    }


class EventTypes(Str):
    """Types, separated by commas; loaded as a list. One that ends in ``*`` stands for several."""

    def from_json(self, value: object) -> list[str]:
        found: set[str] = set()
        for name in str(super().from_json(value)).split(","):
            matching = types_of(name)
            if not matching:
                raise Invalid(value_error((), NO_SUCH_TYPE, name))
            found.update(matching)
        return sorted(found)


class FeedQuerySchema(Documented):
    """Which events are wanted."""

    after = Str(
        description="The `position` of the last event that was read, or `next_cursor`."
        " Without it the feed begins at the oldest event."
    )
    types = EventTypes(
        description="Only these types, separated by commas; `membership.*` stands for all"
        " that begin so; see the [event types](../reference/event-types.md)."
    )
    tenant_id = Uuid(metadata=ONE_TENANT)
    limit = Int(
        ge=1,
        le=MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
        description="The most events of a page; fewer where they exceed 8 MiB.",
    )
    wait = Int(
        ge=0,
        le=MAX_WAIT,
        load_default=0,
        description="The most seconds to wait for an event where there is none. Only the stream"
        " process waits; other processes answer at once, and an empty page has `Retry-After`.",
    )
