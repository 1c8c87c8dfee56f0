"""Answers of /v1/imports."""

from __future__ import annotations

from app.core.http.pagination import PageQuerySchema
from app.core.validation.fields import (
    AnyJson,
    AwareDateTime,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Nested,
    Str,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.imports.models import ImportState

COUNTS = {"user": {"created": 100, "updated": 3, "unchanged": 0, "failed": 1}}


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "created_by_user_id": "platform:operator",
        "state": "completed",
        "size": 26_214,
        "lines_total": 104,
        "lines_done": 104,
        "lines_failed": 1,
        "counts": COUNTS,
        "error": "",
        "line": 17,
        "type": "user",
        "idp_org_id": "org_01JZ4K",
        "name": "user_01JZ4M",
        "errors": [
            {"type": "missing", "loc": ["body", "email"], "msg": "Field required", "input": {}}
        ],
    }
    descriptions = {
        "state": "An import with faulty lines is `completed` too; `failed` means that it ended early,"
        " see `error`.",
        "finished_at": "When the import ended (UTC); null until then.",
        "idp_org_id": "The identity provider's id of the organization that the line is about.",
        "errors": "The entries of the 422 that a request would be answered with.",
    }


class ImportSchema(Documented, RowSchema):
    """An import."""

    created_by_user_id = Str()
    state = Choice(ImportState)
    size = Int(description="The bytes of the file.")
    lines_total = Int(description="The lines of the file.")
    lines_done = Int(description="Blank and faulty lines included.")
    lines_failed = Int(description="The lines that were not applied.")
    counts = JsonObject(description="The number of lines by type and outcome.")
    error = Str(description="Why the import ended early; empty if it did not.")
    finished_at = AwareDateTime(nullable=True)


class ImportFaultSchema(Documented, AnswerSchema):
    """A line that was not applied."""

    line = Int(description="Its number; the first line is 1.")
    type = Str(description="Empty where it cannot be read.")
    idp_org_id = Str()
    name = Str(description="The id of what the line is about.")
    errors = ListOf(AnyJson())


class ImportDetailSchema(ImportSchema):
    """An import with its faults."""

    faults = ListOf(Nested(ImportFaultSchema), description="The first 1,000; none after 7 days.")


class ImportCheckSchema(Documented, AnswerSchema):
    """What an import of a file would do."""

    lines_total = Int(description="The lines of the file.")
    lines_failed = Int(description="The lines that would not be applied.")
    counts = JsonObject(description="The number of lines by type and outcome.")
    faults = ListOf(Nested(ImportFaultSchema), description="The first 1,000.")


class ImportQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of imports."""

    state = Choice(ImportState, description="Only imports in this state.")
