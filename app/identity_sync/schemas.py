"""Requests and answers of /v1/identity."""

from __future__ import annotations

from app.core.validation.fields import AwareDateTime, Choice, ListOf, Str
from app.core.validation.schemas import AnswerSchema
from app.identity_sync.store import Kind


class WaitingSchema(AnswerSchema):
    """An object whose counterpart the provider has not sent."""

    examples = {
        "kind": "membership",
        "source": "workos",
        "object_id": "om_01JZ4N",
        "organization_id": "org_01JZ4K",
        "user_id": "user_01JZ4M",
        "missing": ["user"],
    }
    descriptions = {
        "since": "When the provider's first event of it was applied.",
        "missing": "Empty where it has come; a job then applies the object.",
    }

    kind = Choice(Kind, description="What waits.")
    source = Str(description="The provider.")
    object_id = Str(description="The provider's id.")
    organization_id = Str(description="The provider's id of the organization.")
    user_id = Str(description="The provider's id of the user.")
    since = AwareDateTime(attribute="created_at")
    missing = ListOf(Choice(Kind))
