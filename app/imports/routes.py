"""/v1/imports."""

from __future__ import annotations

from io import BytesIO
from typing import IO, Any

from flask import Request, request
from flask.blueprints import BlueprintSetupState

from app.auth.guard import current_actor, requires
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import Invalid, UnsupportedMediaType
from app.core.http.blueprint import Blueprint
from app.core.http.body_limits import TOO_LARGE, allow_body
from app.core.openapi.components import DESCRIPTIONS, refusal
from app.core.validation.messages import refused
from app.imports import files, service, work
from app.imports.models import Import
from app.imports.schemas import (
    ImportCheckSchema,
    ImportDetailSchema,
    ImportQuerySchema,
    ImportSchema,
)

PATH = "/v1/imports"
MEDIA_TYPES = ("application/x-ndjson", "text/plain", "application/octet-stream")
MAX_BODY = 50 * 1024 * 1024
EXAMPLE = (
    '{"type": "tenant", "idp_org_id": "org_01JZ4K", "name": "Acme Ltd"}\n'
    '{"type": "user", "idp_org_id": "org_01JZ4K", "idp_user_id": "user_01JZ4M",'
    ' "email": "ada@example.com"}\n'
    '{"type": "membership", "idp_org_id": "org_01JZ4K", "idp_user_id": "user_01JZ4M",'
    ' "role": "owner"}\n'
)
BODY = {
    "required": True,
    "description": "JSON Lines, at most 50 MiB; docs/guides/importing.md describes the lines.",
    "content": {
        media_type: {
            "schema": {"type": "string", "format": "binary", "minLength": 1},
            "example": EXAMPLE,
        }
        for media_type in MEDIA_TYPES
    },
}

CHECKED_BODY = {**BODY, "description": "JSON Lines, at most 1 MiB."}
OTHER_TYPE = f"The Content-Type must be {' or '.join(MEDIA_TYPES)}."
REFUSALS = {
    "413": refusal(DESCRIPTIONS[413], TOO_LARGE.format(limit=MAX_BODY)),
    "415": refusal(
        "The Content-Type is none of the operation, or there is a Content-Encoding.", OTHER_TYPE
    ),
}

blp = Blueprint(
    "imports", __name__, url_prefix=PATH, description="Files of tenants, users and more."
)


@blp.record_once
def _configure(_: BlueprintSetupState) -> None:
    allow_body(PATH, MAX_BODY)


@blp.get("")
@requires(Permission.SUPERADMIN)
@blp.arguments(ImportQuerySchema, location="query")
@blp.columns("id", "created_at", "state", "lines_total", "lines_done", "lines_failed", "error")
@blp.response(200, ImportSchema(many=True))
def list_imports(query: dict[str, Any]) -> Page:
    """List imports."""
    return service.list_imports(query.pop("paging"), filters=query)


@blp.post("")
@requires(Permission.SUPERADMIN)
@blp.doc(requestBody=BODY, responses=REFUSALS)
@blp.response(202, ImportSchema)
def create() -> tuple[Import, dict[str, str]]:
    """Create an import that a worker applies: tenants, users and more as JSON Lines.

    The lines are applied in their order. Each line is applied, or reported among the faults of
    the import. The same file again changes nothing.
    """
    made = service.create_import(_file(request), is_queued=True, actor=current_actor())
    return made, {"Location": f"{PATH}/{made.id}"}


@blp.post("/check")
@requires(Permission.SUPERADMIN)
@blp.doc(requestBody=CHECKED_BODY, responses=REFUSALS)
@blp.response(200, ImportCheckSchema)
def check() -> work.Check:
    """Check what an import of JSON Lines would do; nothing is changed.

    All lines are applied in one transaction, which is undone. For a larger file use
    `flask import --dry-run`.
    """
    return work.check(files.blocks_of(_file(request)), actor=current_actor())


@blp.get("/<import_id>")
@requires(Permission.SUPERADMIN)
@blp.response(200, ImportDetailSchema)
def get(import_id: str) -> Any:
    """Get an import with its progress and its first 1,000 faults."""
    return service.get_import(import_id)


def _file(request: Request) -> IO[bytes]:
    """The body; only a request with an Idempotency-Key has it in memory, for the key's digest.

    Raises UnsupportedMediaType, also for a compressed body, and Invalid for an empty one.
    """
    if request.mimetype not in MEDIA_TYPES:
        raise UnsupportedMediaType(OTHER_TYPE)
    if request.content_encoding not in (None, "", "identity"):
        raise UnsupportedMediaType("The body must have no Content-Encoding.")
    if not request.content_length:
        raise Invalid(refused("missing", ["body"], None))
    return BytesIO(request.get_data()) if "Idempotency-Key" in request.headers else request.stream


BLUEPRINTS = (blp,)
