"""What goes in and out of /v1/audit-events."""

from __future__ import annotations

from typing import Any

from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import AwareDateTime, JsonObject, Str, Uuid
from app.core.validation.schemas import Schema

EXAMPLES = {
    "actor": "platform:operator",
    "action": "user.updated",
    "target_type": "user",
    "target_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
    "before": {"first_name": "Ada"},
    "after": {"first_name": "Augusta"},
    "request_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
}


class OwnerId(Uuid):
    """A tenant's id; null instead of the id that stands for the platform."""

    def to_json(self, value: Any) -> Any:
        return None if value == PLATFORM_TENANT_ID else super().to_json(value)


class AuditEventSchema(Schema):
    """One recorded change; ``tenant_id`` is null for what belongs to no tenant."""

    examples = EXAMPLES

    id = Uuid(required=True)
    created_at = AwareDateTime(required=True)
    tenant_id = OwnerId(required=True, nullable=True)
    actor = Str(required=True)
    action = Str(required=True)
    target_type = Str(required=True)
    target_id = Str(required=True)
    before = JsonObject(
        required=True, metadata={"description": "The changed fields as they were; {} of a new row."}
    )
    after = JsonObject(
        required=True, metadata={"description": "The same fields afterwards; {} of a deleted row."}
    )
    request_id = Str(required=True)


class AuditQuerySchema(PageQuerySchema):
    """Filters of the audit trail, each by equality but the times."""

    examples = EXAMPLES

    tenant_id = Uuid()
    target_type = Str(metadata={"description": "Such as `user`: the first part of the action."})
    target_id = Str()
    actor = Str(metadata={"description": "A user's id, `platform:…`, `key:…` or `system:…`."})
    action = Str(metadata={"description": "Such as `user.meta_data_patched`."})
    since = AwareDateTime(metadata={"description": "This moment or later."})
    until = AwareDateTime(metadata={"description": "Before this moment."})
