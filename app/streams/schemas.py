"""Requests of the event streams."""

from __future__ import annotations

from app.auth.tenant_choice import TenantOrOwnSchema
from app.core.http.pagination import ONE_TENANT
from app.core.validation.fields import Str, Uuid
from app.core.validation.schemas import Schema
from app.events.schemas import Documented, EventTypes


class LastEventSchema(Schema):
    """Where a client comes back to."""

    last_event_id = Str(
        data_key="Last-Event-ID", description="The `id` of the last event that was received."
    )


class FlagStreamQuerySchema(TenantOrOwnSchema):
    """Whose flags."""

    grant = Str(
        description="From `eventStreams`, in place of the header `Authorization`, which a browser's"
        " `EventSource` cannot send. It is valid for one tenant, while the credential is."
    )


class FeedStreamQuerySchema(Documented):
    """Which events are wanted."""

    cursor = Str(
        description="As `after` of `GET /v1/events`; `Last-Event-ID` takes precedence. Without it the"
        " stream begins at the oldest event."
    )
    types = EventTypes(description="Only these types, separated by commas, as `membership.*`.")
    tenant_id = Uuid(metadata=ONE_TENANT)
