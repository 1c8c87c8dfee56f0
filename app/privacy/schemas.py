"""Answers of the requests to erase and to export a user."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, Bool, JsonObject, ListOf, Str, Uuid
from app.core.validation.schemas import Schema

DESCRIPTIONS = {
    "user_id": "The user to erase.",
    "requested_at": "When the erasure was requested (UTC).",
    "requested_by": "Who requested it.",
}


class UserErasureSchema(Schema):
    """A requested erasure of a user."""

    examples = {"requested_by": "platform:operator", "is_everywhere": True}
    descriptions = DESCRIPTIONS

    tenant_id = Uuid(required=True, metadata={"description": "The user's tenant."})
    user_id = Uuid(required=True)
    requested_at = AwareDateTime(required=True)
    requested_by = Str(required=True)
    is_everywhere = Bool(
        required=True,
        metadata={
            "description": "Whether what the platform stores about the person is erased too, unless"
            " they are in another tenant: true if a platform credential asked for it."
        },
    )


class UserExportSchema(Schema):
    """What is stored about a user."""

    examples = {
        "tables": {"users": [{"first_name": "Ada", "email": "ada@example.com"}]},
        "incomplete": [],
    }

    tenant_id = Uuid(required=True, metadata={"description": "The user's tenant."})
    user_id = Uuid(required=True, metadata={"description": "The user."})
    tables = JsonObject(
        metadata={
            "description": "The rows of each table. Absent if the answer is replayed for an"
            " Idempotency-Key."
        }
    )
    incomplete = ListOf(
        Str(), required=True, metadata={"description": "The tables that have further rows."}
    )
