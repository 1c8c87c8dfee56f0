"""Requests and answers of /v1/audit-events."""

from __future__ import annotations

from app.audit.outbox import TARGET_TYPE_OF, TARGET_TYPES
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.http.pagination import NEWEST_FIRST, ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Int, JsonObject, Literal, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema

DEFAULT_LINES, MAX_LINES = 1_000, 10_000


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "actor": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "actor_name": "Ada Lovelace",
        "action": "user.updated",
        "target_type": "user",
        "target_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "before": {"first_name": "Ada"},
        "after": {"first_name": "Augusta"},
        "request_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "reason": "",
    }
    descriptions = {"tenant_id": "The tenant whose row it is; null for a row of no tenant."}


ACTOR_NAME = {
    "description": "The name or e-mail address of the tenant's user, or the name of the API key or"
    " the SCIM connection; empty for every other actor."
}


class OwnerId(Uuid):
    """A tenant's id, or null for :data:`PLATFORM_TENANT_ID`."""

    def to_json(self, value: object) -> object:
        return None if str(value) == str(PLATFORM_TENANT_ID) else super().to_json(value)


class Reason(Str):
    """Why a change was made, by the id of its request."""

    keywords = {"description": "`rewind` for a change that a rewind made; empty for others."}

    def to_json(self, value: str) -> str:
        return "rewind" if value.startswith("rewind:") else ""


class AuditEventSchema(Documented, AnswerSchema):
    """One recorded change; ``tenant_id`` is null for a row of no tenant."""

    id = Uuid()
    created_at = AwareDateTime()
    tenant_id = OwnerId(nullable=True)
    actor = Str()
    action = Str()
    target_type = Str(description="What was changed, such as `user`.")
    target_id = Str(description="The id of the row that was changed.")
    before = JsonObject(description="The changed fields before the change; {} for a new row.")
    after = JsonObject(description="The same fields after it; {} for a deleted row.")
    request_id = Str()
    reason = Reason(attribute="request_id", dump_only=True)


class AuditQuerySchema(Documented, PageQuerySchema):
    """Filters of the audit trail."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    target_type = Literal(*TARGET_TYPES, description="Only changes of this type of row.")
    target_id = Str(description="Only changes of the row with this id.")
    actor = Str(description="Only changes by this actor, named as in the list.")
    action = Literal(*TARGET_TYPE_OF, description="Only this action.")


class AuditCsvQuerySchema(AuditQuerySchema):
    """Filters of the audit trail as CSV; a page has more rows."""

    as_json = False

    limit = Int(
        ge=1,
        le=MAX_LINES,
        load_default=DEFAULT_LINES,
        description="The most lines. There are fewer where they take 8 MiB.",
    )


class HistoryEntrySchema(AuditEventSchema):
    """One change of a resource, and the name of who made it."""

    actor_name = Str(metadata=ACTOR_NAME)


class HistoryQuerySchema(PageQuerySchema):
    """The query of a history, which is newest first unless ``order`` says otherwise."""

    order = NEWEST_FIRST
