"""OFREP's requests and answers for the OpenAPI document. OFREP's bodies have no envelope."""

from __future__ import annotations

from typing import Any

from app.core.openapi.responses import IDEMPOTENCY_KEY

CONTEXT = {
    "type": "object",
    "properties": {"targetingKey": {"type": "string"}},
    "additionalProperties": True,
    "description": "Optional and ignored: flags depend only on the credential's tenant.",
    "examples": [{"targetingKey": "user-123"}],
}
REQUEST = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"context": CONTEXT}},
            "example": {"context": {"targetingKey": "user-123"}},
        }
    },
}
EVALUATION = {
    "type": "object",
    "required": ["key", "reason", "variant"],
    "properties": {
        "key": {"type": "string", "examples": ["single-sign-on"]},
        "value": {
            "description": "Absent if the flag's value is null: the SDK uses the caller's default.",
            "examples": [True],
        },
        "reason": {
            "type": "string",
            "enum": ["STATIC", "TARGETING_MATCH", "DISABLED"],
            "description": "`STATIC`: the preset's value. `TARGETING_MATCH`: the tenant's override."
            " `DISABLED`: the preset's value, because the tenant is suspended.",
        },
        "variant": {"type": "string", "enum": ["preset", "override"]},
        "metadata": {
            "type": "object",
            "properties": {"plan": {"type": "string"}},
            "examples": [{"plan": "growth"}],
        },
    },
}
FAILURE = {
    "type": "object",
    "required": ["errorCode", "errorDetails"],
    "properties": {
        "key": {"type": "string", "examples": ["single-sign-on"]},
        "errorCode": {
            "type": "string",
            "enum": ["PARSE_ERROR", "INVALID_CONTEXT", "FLAG_NOT_FOUND"],
        },
        "errorDetails": {"type": "string", "examples": ["The credential has no tenant."]},
    },
}
ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Equal answers have equal ETags."}}


def answer(description: str, schema: dict[str, Any], **options: Any) -> dict[str, Any]:
    """One response in the OpenAPI document."""
    content = {"application/json": {"schema": schema}}
    return {"description": description, "content": content, **options}


UNUSABLE = answer("The body is not valid, or the credential has no tenant.", FAILURE)
ONE = {
    "requestBody": REQUEST,
    "responses": {
        "200": answer("The flag's value.", EVALUATION),
        "400": UNUSABLE,
        "404": answer("The tenant's plan has no such flag.", FAILURE),
    },
}
ALL = {
    "requestBody": REQUEST,
    "responses": {
        "200": answer(
            "Every flag's value, in the preset's order.",
            {
                "type": "object",
                "required": ["flags"],
                "properties": {"flags": {"type": "array", "items": EVALUATION}},
            },
            headers=ETAG,
        ),
        "304": {
            "description": "The answer has not changed since the ETag in `If-None-Match`.",
            "headers": ETAG,
        },
        "400": UNUSABLE,
    },
    "parameters": [
        IDEMPOTENCY_KEY,
        {
            "name": "If-None-Match",
            "in": "header",
            "schema": {"type": "string"},
            "description": "The ETag of an earlier answer; 304 if the answer has not changed.",
        },
    ],
}
