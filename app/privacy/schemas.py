"""Answers of the requests to erase and to export a user."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, Bool, JsonObject, ListOf, Str, Uuid
from app.core.validation.schemas import AnswerSchema


class UserErasureSchema(AnswerSchema):
    """A requested erasure of a user."""

    examples = {"requested_by": "platform:operator", "is_everywhere": True}
    descriptions = {
        "is_everywhere": "Whether what the platform stores about the person is erased too, unless they"
        " are in another tenant: true if a platform credential asked for it.",
    }

    tenant_id = Uuid(description="The user's tenant.")
    user_id = Uuid(description="The user to erase.")
    requested_at = AwareDateTime(description="When the erasure was requested (UTC).")
    requested_by = Str(description="Who requested it.")
    is_everywhere = Bool()


class UserExportSchema(AnswerSchema):
    """What is stored about a user."""

    optional = ("tables",)

    examples = {
        "tables": {"users": [{"first_name": "Ada", "email": "ada@example.com"}]},
        "incomplete": [],
    }
    descriptions = {
        "tables": "The rows of each table. Absent if the answer is replayed for an"
        " Idempotency-Key.",
        "incomplete": "The tables that have further rows, or need `audit:read`.",
    }

    tenant_id = Uuid(description="The user's tenant.")
    user_id = Uuid()
    tables = JsonObject()
    incomplete = ListOf(Str())
