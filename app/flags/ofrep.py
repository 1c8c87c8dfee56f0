"""OpenFeature Remote Evaluation Protocol (OFREP) 0.3: flags for any OpenFeature SDK.

The tenant comes from the credential. Its flags depend on nothing else, so a context and its
``targetingKey`` are optional. Answers and errors have the protocol's own bodies. The reasons are:

- ``STATIC``: the preset's value
- ``TARGETING_MATCH``: the tenant's override
- ``DISABLED``: the preset's value while the tenant is suspended
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from flask import Response, request

from app.auth.guard import home_tenant_id, requires
from app.auth.permissions import Permission
from app.core import json_text
from app.core.errors import AppError
from app.core.http.blueprint import Blueprint
from app.flags import ofrep_document
from app.flags.evaluation import EffectiveFlag, Layer, evaluate, evaluate_all, fingerprint

blp = Blueprint(
    "ofrep",
    __name__,
    url_prefix="/ofrep/v1/evaluate",
    description="OpenFeature Remote Evaluation Protocol 0.3.",
)

REASONS = {Layer.OVERRIDE: "TARGETING_MATCH", Layer.TENANT_SUSPENDED: "DISABLED"}


class EvaluationFailure(AppError):
    """An error with OFREP's body; ``key`` is None for a bulk evaluation."""

    def __init__(
        self, error_code: str, details: str, *, key: str | None, status: int = 400
    ) -> None:
        super().__init__(details)
        self.code = error_code
        self.status = status
        self.key = key

    def body(self) -> dict[str, Any]:
        named = {} if self.key is None else {"key": self.key}
        return {**named, "errorCode": self.code, "errorDetails": self.detail}


@blp.post("/flags/<key>")
@requires(Permission.FLAGS_READ, while_suspended=True)
@blp.doc(**ofrep_document.ONE)
def evaluate_flag(key: str) -> Response:
    """Evaluate one flag (OFREP)."""
    tenant_id = _tenant_of_request(key)
    found = evaluate(tenant_id, key)
    flag = found.flags.get(key)
    if flag is None:
        details = f"The plan {found.plan_name!r} has no flag {key!r}."
        raise EvaluationFailure("FLAG_NOT_FOUND", details, key=key, status=404)
    return _answer(_success(flag, found.plan_name))


@blp.post("/flags")
@requires(Permission.FLAGS_READ, while_suspended=True)
@blp.doc(**ofrep_document.ALL)
def evaluate_flags() -> Response:
    """Evaluate all flags (OFREP).

    Answers 304 if `If-None-Match` has the ETag of an equal answer.
    """
    tenant_id = _tenant_of_request()
    if request.if_none_match:
        current = fingerprint(tenant_id)
        if request.if_none_match.contains_weak(current):
            return _tagged(Response(status=304), current)
    found = evaluate_all(tenant_id)
    flags = [_success(flag, found.plan_name) for flag in found.flags.values()]
    return _tagged(_answer({"flags": flags}), found.fingerprint)


def _tenant_of_request(key: str | None = None) -> UUID:
    """Check the request's body; returns the credential's tenant."""
    _check_body(key)
    tenant_id = home_tenant_id()
    if tenant_id is None:
        raise EvaluationFailure("INVALID_CONTEXT", "The credential has no tenant.", key=key)
    return tenant_id


def _check_body(key: str | None) -> None:
    try:
        body = orjson.loads(request.get_data())
    except orjson.JSONDecodeError as fault:
        raise EvaluationFailure("PARSE_ERROR", f"The body is not JSON: {fault}.", key=key) from None
    context = body.get("context", {}) if isinstance(body, dict) else None
    if not isinstance(context, dict):
        details = "The body must be an object, and its `context` an object."
        raise EvaluationFailure("INVALID_CONTEXT", details, key=key)
    if not isinstance(context.get("targetingKey", ""), str):
        raise EvaluationFailure("INVALID_CONTEXT", "`targetingKey` must be a string.", key=key)


def _success(flag: EffectiveFlag, plan_name: str) -> dict[str, Any]:
    """One flag's answer. A null is left out, so the SDK uses the caller's default value."""
    answer = {
        "key": flag.key,
        "reason": REASONS.get(flag.layer, "STATIC"),
        "variant": flag.source,
        "metadata": {"plan": plan_name},
    }
    return answer if flag.value is None else {**answer, "value": flag.value}


def _answer(body: dict[str, Any]) -> Response:
    return Response(json_text.dumps(body), content_type="application/json")


def _tagged(response: Response, tag: str) -> Response:
    response.set_etag(tag)
    return response
