"""The parts of the OpenAPI document that operations share: schemas, headers, error responses."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from app.core.errors import AppError, Entry, NotFound, Unauthenticated, error
from app.core.http import idempotency
from app.core.http.body_limits import MAX_BODY, TOO_LARGE
from app.core.http.parser import UNREADABLE

CODE = "For programs, where the status alone is ambiguous."
SCHEMAS: dict[str, dict[str, Any]] = {
    "Error": {
        "type": "object",
        "title": "Error",
        "description": "Why a request was refused.",
        "required": ["detail"],
        "properties": {
            "detail": {"type": "string", "description": "One sentence for people."},
            "code": {"type": "string", "description": CODE},
        },
        "additionalProperties": True,  # errors with some codes have further keys
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


def refusal(description: str, detail: str) -> dict[str, Any]:
    """An error answer without a ``code``; its body is the example."""
    answer = _answer(description, "Error")
    answer["content"]["application/json"]["example"] = {"detail": detail}
    return answer


def coded_answer(description: str, errors: Sequence[type[AppError]]) -> dict[str, Any]:
    """An error answer with the code of one of ``errors``; each error's body is an example."""
    answer = _answer(description, "Error")
    content = answer["content"]["application/json"]
    content["schema"] |= {
        "required": ["code"],
        "properties": {
            "code": {"enum": [error.code for error in errors], "description": CODE},
            **{key: schema for error in errors for key, schema in error.keys.items()},
        },
    }
    content["examples"] = {error.code: {"value": error().body()} for error in errors}
    return answer


def _invalid(**entries: Entry) -> dict[str, Any]:
    answer = _answer(
        "The request is not valid; `detail` lists the errors and their places, the first ones where "
        "all would take more than 256 KiB. An `input` of more than 16 KiB is null, and longer texts "
        "than 1,024 characters (in `loc` 4,096) end in `…`.",
        "HTTPValidationError",
    )
    examples = {type_: {"value": {"detail": [entry]}} for type_, entry in entries.items()}
    answer["content"]["application/json"]["examples"] = examples
    return answer


_MISSING = error(["body", "name"], "missing", "Field required", {})
_REUSED = idempotency.reused("8c1f6e0a-invoice-42")
INVALID = HTTPStatus(422).name  # flask-smorest's `@blp.arguments` refers to this name
INVALID_OR_KEY_REUSED = "INVALID_OR_KEY_REUSED"
INVALID_OR_UNREADABLE = "INVALID_OR_UNREADABLE"


def _invalid_or_unreadable() -> dict[str, Any]:
    answer = _invalid(missing=_MISSING, idempotency_key_reused=_REUSED)
    content = answer["content"]["application/json"]
    content["schema"] = {"anyOf": [content["schema"], {"$ref": "#/components/schemas/Error"}]}
    content["examples"]["unreadable"] = {"value": {"detail": UNREADABLE}}
    return answer


RESPONSES = {
    INVALID: _invalid(missing=_MISSING),
    INVALID_OR_KEY_REUSED: _invalid(missing=_MISSING, idempotency_key_reused=_REUSED),
    INVALID_OR_UNREADABLE: _invalid_or_unreadable(),
}


def _header(name: str, example: str, description: str, **bounds: int) -> dict[str, Any]:
    schema = {"type": "string", **bounds}
    where = {"name": name, "in": "header", "required": False}
    return {**where, "schema": schema, "example": example, "description": description}


IF_MATCH = _header(
    "If-Match",
    '"3"',
    "The ETag of the version to change, in its quotation marks; 412 if another version is current.",
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
    "the first answer, with `Idempotent-Replayed: true`. After an answer above 64 KiB it gets the "
    "status and the headers of the first answer, and a body with a `detail` that says so.",
    minLength=1,
    maxLength=255,
)

CONSISTENCY = _header(
    "X-Consistency",
    "16/B374D848",
    "The `X-Consistency` of a change's answer. Where the service reads from replicas, the answer "
    "then contains that change. Without it, it may be some seconds behind.",
)
CONSISTENCY_ANSWER = {
    "X-Consistency": {
        "schema": {"type": "string"},
        "example": "16/B374D848",
        "description": "Only where the service reads from replicas: send it with a read that has "
        "to contain this change.",
    }
}

HEADERS = {
    "ETag": {
        "schema": {"type": "string"},
        "example": '"3"',
        "description": "The version, for `If-Match` and `If-None-Match`.",
    },
    "Location": {
        "schema": {"type": "string", "format": "uri-reference"},
        "example": "/v1/users/01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
        "description": "The path of the new resource.",
    },
    "Retry-After": {
        "schema": {"type": "integer"},
        "example": 5,
        "description": "Seconds after which to send the request again.",
    },
}
"""Headers of answers; each is a component of the document."""

DESCRIPTIONS = {
    401: "No credential, or one that is not valid.",
    403: "The credential may not do this; `code` names the reason.",
    404: "No such resource, or none that this credential can see.",
    409: "The state of the data does not allow the change; `code` names the reason.",
    410: "What is asked for is no longer kept; `code` names the reason.",
    412: "`If-Match` names a version that is no longer current.",
    400: "The body cannot be parsed.",
    413: "The body is too large; `detail` names the limit in bytes.",
    429: "Too many requests; `Retry-After` is in seconds.",
    421: "This process does not have the operation; `code` names the reason.",
    503: "A service that this request needs is not available; `Retry-After` is in seconds.",
}
DETAILS = {
    400: UNREADABLE,
    401: Unauthenticated.detail,
    404: NotFound.detail,
    413: TOO_LARGE.format(limit=MAX_BODY),
    429: HTTPStatus(429).phrase,
}
"""The ``detail`` of errors that have no ``code``, by status."""
