"""What every operation documents without saying so: who may, which headers it takes, how it refuses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from http import HTTPStatus
from typing import Any

ERROR_SCHEMA = {
    "type": "object",
    "title": "Error",
    "required": ["detail"],
    "properties": {
        "detail": {"type": "string", "description": "One sentence for people."},
        "code": {
            "type": "string",
            "description": "For programs, where the status alone is ambiguous.",
        },
    },
}

# Exactly FastAPI's two schemas.
VALIDATION_ERROR_SCHEMA = {
    "type": "object",
    "title": "ValidationError",
    "required": ["loc", "msg", "type"],
    "properties": {
        "loc": {
            "type": "array",
            "title": "Location",
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "msg": {"type": "string", "title": "Message"},
        "type": {"type": "string", "title": "Error Type"},
        "input": {"title": "Input"},
        "ctx": {"type": "object", "title": "Context"},
    },
}
HTTP_VALIDATION_ERROR_SCHEMA = {
    "type": "object",
    "title": "HTTPValidationError",
    "properties": {
        "detail": {
            "type": "array",
            "title": "Detail",
            "items": {"$ref": "#/components/schemas/ValidationError"},
        }
    },
}
SCHEMAS = {
    "Error": ERROR_SCHEMA,
    "ValidationError": VALIDATION_ERROR_SCHEMA,
    "HTTPValidationError": HTTP_VALIDATION_ERROR_SCHEMA,
}

VALIDATION_FAILED = {
    "description": "What was sent does not fit; `detail` names every fault and where it is.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/HTTPValidationError"}}
    },
}

IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "example": '"3"',
    "description": "The ETag of the version that this change is meant for; any other version is refused with 412.",
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "example": '"3"',
    "description": "The ETag of the version already known; if it is still current, 304 without a body.",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "example": "8c1f6e0a-invoice-42",
    "description": "The same request sent again with the same key within 24 hours has no second effect and gets "
    "the first answer, with `Idempotent-Replayed: true`.",
}

DESCRIPTIONS = {
    401: "No credential, or one that does not hold.",
    403: "The credential may not do this: `permission_denied`, `no_membership`, `tenant_suspended` or a rule of the resource.",
    404: "No such resource, or none that this credential can see.",
    409: "The state of the data does not allow it; `code` says why.",
    412: "`If-Match` names a version that is no longer current (`stale_version`).",
    400: "The body cannot be parsed.",
    413: "The body is too large.",
    429: "Too many requests; `Retry-After` says when to come back.",
    503: "Something this request needs is away; `Retry-After` says when to come back.",
}


def complete(
    doc: dict[str, Any], described: Collection[str], *, rule: str, method: str, access: Any
) -> dict[str, Any]:
    """Add the common headers, refusals and security to an operation's documentation.

    ``described``: the statuses that the endpoint describes itself.
    """
    guarded = getattr(access, "permission", None) is not None
    doc["security"] = [{"user_token": []}, {"api_key": []}] if guarded else []
    if guarded:
        doc["x-permission"] = str(access.permission)
        doc.setdefault("parameters", []).extend(_headers(rule, method))
    responses = doc.setdefault("responses", {})
    if guarded and (doc.get("parameters") or "requestBody" in doc or "<" in rule):
        responses.setdefault(422, HTTPStatus(422).name)
    for status in _refusals(doc, rule, method) if guarded else ():
        if str(status) not in described:
            responses.setdefault(str(status), _refusal(status))
    if guarded and method == "get" and "<" in rule:
        responses.setdefault("304", {"description": "`If-None-Match` names the current version."})
    return doc


def _headers(rule: str, method: str) -> Iterator[dict[str, Any]]:
    if "<" in rule:
        yield IF_NONE_MATCH if method == "get" else IF_MATCH
    if method in ("post", "patch"):
        yield IDEMPOTENCY_KEY


def _refusals(doc: dict[str, Any], rule: str, method: str) -> Iterator[int]:
    yield from (401, 403, 429, 503)
    if "requestBody" in doc:
        yield 400
    if "<" in rule or _chooses_tenant(doc):
        yield 404
    if method != "get":
        yield from (409, 413)
        if "<" in rule:
            yield 412


def _chooses_tenant(doc: dict[str, Any]) -> bool:
    """Whether ``?tenant_id=`` names the one tenant that is meant; a list is only narrowed by it."""
    for parameter in doc.get("parameters", ()):
        fields = getattr(parameter.get("schema"), "_declared_fields", {})
        if "tenant_id" in fields and "cursor" not in fields:
            return True
    return False


def _refusal(status: int) -> dict[str, Any]:
    return {
        "description": DESCRIPTIONS[status],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
