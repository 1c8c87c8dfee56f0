"""OFREP's requests, answers and errors for the OpenAPI document; their bodies have no envelope."""

from __future__ import annotations

from app.core.errors import DatabaseUnavailable
from app.core.http.body_limits import MAX_BODY, TOO_LARGE
from app.core.http.idempotency import IdempotencyInProgress, reused
from app.core.json_text import Json
from app.core.openapi.components import CONSISTENCY, DESCRIPTIONS, IDEMPOTENCY_KEY

COMPONENTS = "#/components/schemas/"
CONTEXT = {
    "type": "object",
    "properties": {
        "targetingKey": {
            "type": "string",
            "description": "The user, for rules: the id, the `idp_user_id` or the e-mail address of a"
            " user with a membership in the tenant. A rollout by user takes any text.",
        },
        "tenant_id": {
            "type": ["string", "null"],
            "maxLength": 255,
            "description": "The tenant: its id, `idp_org_id` or slug. A platform credential needs it"
            " unless its token has an organization. A tenant's credential may name its own tenant.",
        },
    },
    "additionalProperties": True,
    "description": "Optional; of at most 64 KiB. Rules can compare its other keys too.",
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
KEY = {"type": "string", "examples": ["single-sign-on"], "description": "The flag's key."}
EVALUATION = {
    "type": "object",
    "description": "A flag's value, and why it has it.",
    "required": ["key", "reason", "variant"],
    "properties": {
        "key": KEY,
        "value": {
            "description": "Absent if the flag's value is null: the SDK uses the caller's default.",
            "examples": [True],
        },
        "reason": {
            "type": "string",
            "enum": ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "ERROR"],
            "description": "`STATIC`: the preset's value. `TARGETING_MATCH`: the tenant's override,"
            " or a rule. `SPLIT`: a rule with a rollout. `DISABLED`: the preset's value, because the"
            " tenant is suspended. `ERROR`: the preset's value, because a rule failed.",
        },
        "variant": {
            "type": "string",
            "enum": ["preset", "override", "rule"],
            "description": "Where the value comes from.",
        },
        "metadata": {
            "type": "object",
            "properties": {
                "plan": {"type": "string", "description": "The tenant's plan."},
                "rule": {"type": "string", "description": "The rule that gives the value."},
            },
            "examples": [{"plan": "growth"}],
            "description": "More about the evaluation.",
        },
        "errorCode": {"type": "string", "enum": ["GENERAL"], "description": "With `ERROR`."},
        "errorDetails": {"type": "string", "description": "One sentence, with `ERROR`."},
    },
}
EVALUATIONS = {
    "type": "object",
    "description": "The values of all flags.",
    "required": ["flags"],
    "properties": {
        "flags": {
            "type": "array",
            "items": {"$ref": f"{COMPONENTS}OfrepEvaluation"},
            "description": "The evaluations.",
        },
        "eventStreams": {
            "type": "array",
            "description": "The stream that tells when flags have changed, with either its address or"
            " its path at the same origin. Absent until there was a first event.",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"type": "string", "enum": ["sse"], "description": "Its kind."},
                    "url": {"type": "string", "description": "Its address."},
                    "endpoint": {
                        "type": "object",
                        "required": ["requestUri"],
                        "description": "Where it is without an address.",
                        "properties": {
                            "requestUri": {"type": "string", "description": "Path and query."}
                        },
                    },
                },
            },
        },
    },
}
FAILURE = {
    "type": "object",
    "description": "Why a flag could not be evaluated.",
    "required": ["errorCode", "errorDetails"],
    "properties": {
        "key": KEY,
        "errorCode": {
            "type": "string",
            "enum": ["PARSE_ERROR", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"],
            "description": "The protocol's code of the error, for programs.",
        },
        "errorDetails": {"type": "string", "description": "One sentence for people."},
    },
}
SCHEMAS = {"OfrepEvaluation": EVALUATION, "OfrepEvaluations": EVALUATIONS, "OfrepFailure": FAILURE}
ETAG = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "Equal answers for the same tenant have equal ETags.",
    }
}


def answer(description: str, schema: str, **options: Json) -> dict[str, Json]:
    reference = {"$ref": f"{COMPONENTS}{schema}"}
    return {
        "description": description,
        "content": {"application/json": {"schema": reference, **options}},
    }


def failure(description: str, details: str, error_code: str = "GENERAL") -> dict[str, Json]:
    return answer(
        description, "OfrepFailure", example={"errorCode": error_code, "errorDetails": details}
    )


FAILURES = {
    "400": failure(
        "The body cannot be parsed (`PARSE_ERROR`), or its context is not valid or names no tenant"
        " that the credential can see (`INVALID_CONTEXT`).",
        "`tenant_id` names no tenant that the credential can see.",
        "INVALID_CONTEXT",
    ),
    "401": failure("No credential, or one that is not valid.", "Not authenticated"),
    "403": failure("The credential may not read flags.", "This needs the permission flags:read."),
    "409": failure(
        "`Idempotency-Key`: the first request is still running.", IdempotencyInProgress.detail
    ),
    "413": failure("The body is too large.", TOO_LARGE.format(limit=MAX_BODY)),
    "422": failure(
        "`Idempotency-Key`: it is not valid, or another request had it.", reused("")["msg"]
    ),
    "429": failure(DESCRIPTIONS[429], "Too Many Requests"),
    "503": failure(DESCRIPTIONS[503], DatabaseUnavailable.detail),
}
ONE = {
    "requestBody": REQUEST,
    "responses": {
        "200": answer("The flag's value.", "OfrepEvaluation"),
        "404": failure(
            "The tenant's plan has no such flag.",
            "The plan 'growth' has no flag 'single-sign-on'.",
            "FLAG_NOT_FOUND",
        ),
        **FAILURES,
    },
}
ALL = {
    "requestBody": REQUEST,
    "responses": {
        "200": {
            **answer("Every flag's value, in the preset's order.", "OfrepEvaluations"),
            "headers": ETAG,
        },
        "304": {
            "description": "The answer has not changed since the ETag in `If-None-Match`.",
            "headers": ETAG,
        },
        **FAILURES,
    },
    "parameters": [
        IDEMPOTENCY_KEY,
        CONSISTENCY,
        {
            "name": "If-None-Match",
            "in": "header",
            "schema": {"type": "string"},
            "description": "The ETag of an earlier answer; 304 if the answer has not changed.",
        },
    ],
}
