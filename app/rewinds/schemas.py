"""Requests and answers of rewinds."""

from __future__ import annotations

from typing import Any

from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Literal,
    Nested,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, Schema
from app.rewinds.kinds import KINDS
from app.rewinds.models import RewindState

# marshmallow has an attribute `only`
ONLY: dict[str, Any] = dict.fromkeys(("data_key", "attribute"), "only")
ROW_ID = "The row's id; of a resource its type, `/` and its id."


class RewindCreateSchema(Schema):
    """The moment to go back to, and what goes back."""

    examples = {
        "to": "2026-11-24T14:00:00Z",
        "kinds": ["users", "memberships"],
        "only": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"],
    }

    to = Str(required=True, description="A time (RFC 3339) or a position of the event feed.")
    kinds = ListOf(
        Literal(*KINDS),
        load_default=lambda: [*KINDS],
        metadata={"minItems": 1, "maxItems": len(KINDS)},
        description="Only rows of these kinds; without it, of all.",
    )
    ids = ListOf(
        Uuid(),
        load_default=None,
        metadata={"minItems": 1, "maxItems": 1000},
        description="Only the rows with these ids; no resources, as their ids are names.",
        **ONLY,
    )
    dry_run = Bool(load_default=True, description="Change nothing, and show what would change.")


class RewoundRowSchema(AnswerSchema):
    """A row that a rewind would change."""

    examples = {
        "name": "ada@example.com",
        "changes": {"first_name": {"before": "Augusta", "after": "Ada"}},
    }

    kind = Literal(*KINDS, description="The kind of the row.")
    id = Str(description=ROW_ID)
    name = Str(description="Its slug, address, key or provider's id; empty without one.")
    action = Literal(
        "created",
        "updated",
        "removed",
        description="What would be done. Users, memberships and subscriptions are deactivated or"
        " cancelled instead of `removed`.",
    )
    changes = JsonObject(description="Each field, `before` (now) and `after` (as it was).")


class LeftOutSchema(AnswerSchema):
    """A row, or fields of it, that stay as they are."""

    examples = {"code": "email_taken", "detail": "Another active user has this address."}

    kind = Literal(*KINDS, description="The kind of the row.")
    id = Str(description=ROW_ID)
    code = Str(description="Why: the code of the error that a request would be answered with.")
    detail = Str(description="The same as a sentence.")


class Position(Str):
    """A position of the event feed, as ``to`` takes it."""

    def to_json(self, value: int | None) -> str | None:
        return None if value is None else str(value)


class RewindSchema(AnswerSchema):
    """A rewind of a tenant, or the preview of one."""

    examples = {
        "created_by_user_id": "platform:operator",
        "state": "completed",
        "to_position": "4711",
        "position": "5120",
        "error": "",
        "counts": {"users": {"updated": 120, "removed": 40}},
        "only": ["01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"],
    }

    id = Uuid(nullable=True, description="Null for a preview.")
    tenant_id = Uuid()
    created_at = AwareDateTime(nullable=True)
    created_by_user_id = Str()
    state = Choice(
        RewindState, description="A rewind that left rows out is `completed` too; see `left_out`."
    )
    to_position = Position(description="The position of the moment to go back to.")
    position = Position(
        nullable=True,
        description="The rewind's own position: rows changed only after it stay, and a rewind `to`"
        " it takes this one back. Null until it has begun.",
    )
    kinds = ListOf(Literal(*KINDS), description="The kinds that go back.")
    ids = ListOf(
        Uuid(), nullable=True, description="The only rows that go back; null for all.", **ONLY
    )
    done = Int(description="The changes made so far; of a preview, those that would be made.")
    counts = JsonObject(description="Their number by kind and action.")
    left_out_total = Int(description="How often rows stay as they are, at least in part.")
    error = Str(description="Why the rewind has failed; empty if it has not.")
    finished_at = AwareDateTime(nullable=True, description="When it ended (UTC); null until then.")


class RewindDetailSchema(RewindSchema):
    """A rewind with the rows that it left out; a preview also has the changes."""

    left_out = ListOf(Nested(LeftOutSchema), description="The first 1,000; of a preview, 100.")
    changes = ListOf(Nested(RewoundRowSchema), description="The first 100 of a preview; else none.")
    is_complete = Bool(
        description="False for a preview of more than 10,000 changed rows: it counts only these."
    )


class RewindQuerySchema(PageQuerySchema):
    """Filters of the list of rewinds."""

    tenant_id = Uuid(metadata=ONE_TENANT)
