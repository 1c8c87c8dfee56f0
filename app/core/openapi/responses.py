"""The parts of the OpenAPI document that operations share: security, headers, error responses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from http import HTTPStatus
from typing import Any

from flask_smorest.utils import resolve_schema_instance

SCHEMAS: dict[str, dict[str, Any]] = {
    "Error": {
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
    },
    # Exactly FastAPI's two schemas.
    "ValidationError": {
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
    },
    "HTTPValidationError": {
        "type": "object",
        "title": "HTTPValidationError",
        "properties": {
            "detail": {
                "type": "array",
                "title": "Detail",
                "items": {"$ref": "#/components/schemas/ValidationError"},
            }
        },
    },
}


def _answer(description: str, schema: str) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": description, "content": {"application/json": {"schema": reference}}}


VALIDATION_FAILED = _answer(
    "The request is not valid; `detail` lists all errors and their places.", "HTTPValidationError"
)


def _header(name: str, example: str, description: str, **bounds: int) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    where = {"name": name, "in": "header", "required": False}
    return {**where, "schema": schema, "example": example, "description": description}


IF_MATCH = _header(
    "If-Match", '"3"', "The ETag of the version to change; 412 if another version is current."
)
IF_NONE_MATCH = _header(
    "If-None-Match",
    '"3"',
    "The ETag of a known version; 304 without a body if it is still current.",
)
IDEMPOTENCY_KEY = _header(
    "Idempotency-Key",
    "8c1f6e0a-invoice-42",
    "The same request sent again with the same key within 24 hours has no second effect and gets "
    "the first answer, with `Idempotent-Replayed: true`.",
    minLength=1,
    maxLength=255,
)

DESCRIPTIONS = {
    401: "No credential, or one that is not valid.",
    403: "The credential may not do this: `permission_denied`, `no_membership`, `tenant_suspended` or a rule of the resource.",
    404: "No such resource, or none that this credential can see.",
    409: "The state of the data does not allow the change; `code` names the reason.",
    412: "`If-Match` names a version that is no longer current (`stale_version`).",
    400: "The body cannot be parsed.",
    413: "The body is too large.",
    429: "Too many requests; `Retry-After` is in seconds.",
    503: "A service that this request needs is not available; `Retry-After` is in seconds.",
}


def complete(
    doc: dict[str, Any], described: Collection[str], *, rule: str, method: str, access: Any
) -> dict[str, Any]:
    """Add the common headers, error responses and security to an operation's documentation.

    ``described``: the statuses that the endpoint documents itself.
    """
    guarded = getattr(access, "permission", None) is not None
    doc["security"] = [{"user_token": []}, {"api_key": []}] if guarded else []
    if guarded:
        doc["x-permission"] = str(access.permission)
        doc.setdefault("parameters", []).extend(_headers(rule, method))
    responses = doc.setdefault("responses", {})
    if guarded and (doc.get("parameters") or "requestBody" in doc or "<" in rule):
        responses.setdefault(422, HTTPStatus(422).name)
    for status in _error_statuses(doc, rule, method) if guarded else ():
        if str(status) not in described:
            responses.setdefault(str(status), _answer(DESCRIPTIONS[status], "Error"))
    if guarded and method == "get" and "<" in rule:
        responses.setdefault("304", {"description": "`If-None-Match` names the current version."})
    return doc


def _headers(rule: str, method: str) -> Iterator[dict[str, Any]]:
    if "<" in rule:
        yield IF_NONE_MATCH if method == "get" else IF_MATCH
    if method in ("post", "patch"):
        yield IDEMPOTENCY_KEY


def _error_statuses(doc: dict[str, Any], rule: str, method: str) -> Iterator[int]:
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
    """Whether ``?tenant_id=`` chooses the tenant; in a list it is only a filter."""
    for parameter in doc.get("parameters", ()):
        if parameter["in"] == "query":
            fields = resolve_schema_instance(parameter["schema"]).fields
            if "tenant_id" in fields and "cursor" not in fields:
                return True
    return False
