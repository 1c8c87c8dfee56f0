"""OpenFeature Remote Evaluation Protocol (OFREP) 0.3: flags for any OpenFeature SDK.

Flags depend on the tenant and, where rules ask, on the rest of the evaluation context. The tenant is
the credential's; the context of a platform credential names it as ``tenant_id``. ``eventStreams`` of
the answer for all flags names the stream (:mod:`app.streams`) that tells a client when to ask again.
Answers and errors have the protocol's own bodies. The reasons are:

- ``STATIC``: the preset's value
- ``TARGETING_MATCH``: the tenant's override, or a rule
- ``SPLIT``: a rule with a rollout
- ``ERROR``: the preset's value, as a rule could not be evaluated
- ``DISABLED``: the preset's value while the tenant is suspended
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from uuid import UUID

import orjson
from flask import Response, request
from flask.blueprints import BlueprintSetupState

from app.auth.guard import home_tenant_id, requires
from app.auth.permissions import Permission
from app.auth.proofs import Proof
from app.config import current_config
from app.core import json_text
from app.core.db.replicas.watch import NotReadable
from app.core.db.tenancy import current_scope
from app.core.db.transactions import current_transaction
from app.core.errors import AppError, Invalid, PermissionDenied
from app.core.http.blueprint import Blueprint
from app.core.http.endpoint import AS_OF, has_past
from app.core.http.error_handlers import answer_errors
from app.core.http.request import current_request
from app.core.json_text import Json
from app.flags import ofrep_document
from app.flags.evaluation import EffectiveFlag, Layer, evaluate, evaluate_all, fingerprint
from app.tenants.lookup import visible_tenant_id

blp = Blueprint(
    "ofrep",
    __name__,
    url_prefix="/ofrep/v1/evaluate",
    description="OpenFeature Remote Evaluation Protocol 0.3.",
)

REASONS = {
    Layer.OVERRIDE: "TARGETING_MATCH",
    Layer.TENANT_SUSPENDED: "DISABLED",
    Layer.RULE_FAILED: "ERROR",
}
MAX_TENANT_NAME = 255
MAX_CONTEXT = 64 * 1024
RULE_FAILURE = {
    "errorCode": "GENERAL",
    "errorDetails": "A rule of the flag could not be evaluated, so the plan's value applies.",
}


class EvaluationFailure(AppError):
    """An error of the protocol's own, with its ``errorCode``."""

    def __init__(self, error_code: str, details: str, *, status: int = 400) -> None:
        super().__init__(details)
        self.error_code = error_code
        self.status = status


@blp.post("/flags/<key>")
@requires(Permission.FLAGS_READ, while_suspended=True)
@blp.doc(**ofrep_document.ONE)
@has_past
def evaluate_flag(key: str) -> dict[str, Json]:
    """Evaluate one flag (OFREP)."""
    context = _context()
    found = evaluate(_tenant_id(context), key, context)
    flag = found.flags.get(key)
    if flag is None:
        details = f"The plan {found.plan_name!r} has no flag {key!r}."
        raise EvaluationFailure("FLAG_NOT_FOUND", details, status=404)
    return _success(flag, found.plan_name)


@blp.post("/flags")
@requires(Permission.FLAGS_READ, while_suspended=True)
@blp.doc(**ofrep_document.ALL)
@has_past
def evaluate_flags() -> Response:
    """Evaluate all flags (OFREP).

    Answers 304 if `If-None-Match` has the ETag of an equal answer for the same tenant.
    `eventStreams` names the stream that tells when flags have changed, see `GET /ofrep/v1/events`.
    """
    context = _context()
    tenant_id = _tenant_id(context)
    proof = current_request().proof
    tag = proof.tag if isinstance(proof, Proof) else str
    if request.if_none_match:
        current = tag(fingerprint(tenant_id))
        if request.if_none_match.contains_weak(current):
            return _tagged(Response(status=304), current)
    found = evaluate_all(tenant_id, context)
    body: dict[str, object] = {
        "flags": [_success(flag, found.plan_name) for flag in found.flags.values()]
    }
    current, suffix = tag(found.fingerprint), ""
    if found.facts is not None:  # the flags depend on more than the tenant
        suffix = "-" + md5(json_text.dumps(body), usedforsecurity=False).hexdigest()
        if request.if_none_match.contains_weak(current + suffix):
            return _tagged(Response(status=304), current, suffix)
    is_now = AS_OF not in request.args
    if is_now and isinstance(proof, Proof) and found.grant_key is not None:
        body["eventStreams"] = [_event_stream(tenant_id, proof.grant(tenant_id, found.grant_key))]
    answer = Response(json_text.dumps(body), content_type="application/json")
    return _tagged(answer, current, suffix)


def _event_stream(tenant_id: UUID, grant: str) -> dict[str, object]:
    """Where a client listens for changes (OFREP's ADR 8); without ``url``, at the same origin."""
    path = f"/ofrep/v1/events?tenant_id={tenant_id}&grant={grant}"
    address = current_config().stream_url or current_config().public_url
    where = {"url": address.rstrip("/") + path} if address else {"endpoint": {"requestUri": path}}
    return {"type": "sse", **where}


def _context() -> Mapping[str, object]:
    """The evaluation context of the request's body; empty where the body has none."""
    sent = request.get_data()
    try:
        body = orjson.loads(sent)
    except orjson.JSONDecodeError as fault:
        raise EvaluationFailure("PARSE_ERROR", f"The body is not JSON: {fault}.") from None
    context = body.get("context", {}) if isinstance(body, dict) else None
    if not isinstance(context, dict):
        raise _invalid_context("The body must be an object, and its `context` an object.")
    if not isinstance(context.get("targetingKey", ""), str):
        raise _invalid_context("`targetingKey` must be a string.")
    if len(sent) > MAX_CONTEXT:
        raise _invalid_context(f"The body with the context can have at most {MAX_CONTEXT} bytes.")
    return context


def _tenant_id(context: Mapping[str, object]) -> UUID:
    """The tenant that the context names, else the credential's.

    A tenant's credential may name its own tenant only, and may not read the past.
    """
    if AS_OF in request.args and current_scope().tenant_id is not None:
        raise PermissionDenied("Only platform credentials can evaluate flags of the past.")
    name, home = context.get("tenant_id"), home_tenant_id()
    if home is not None and name in (None, str(home)):
        return home
    if name is None:
        raise _invalid_context("The context needs the `tenant_id`: the credential has no tenant.")
    if not isinstance(name, str) or len(name) > MAX_TENANT_NAME or "\0" in name:
        raise _invalid_context(
            "`tenant_id` must be the id, the idp_org_id or the slug of a tenant."
        )
    found = visible_tenant_id(name)
    if found is None:
        raise _invalid_context("`tenant_id` names no tenant that the credential can see.")
    return found


def _invalid_context(details: str) -> EvaluationFailure:
    return EvaluationFailure("INVALID_CONTEXT", details)


def _success(flag: EffectiveFlag, plan_name: str) -> dict[str, Json]:
    """One flag's answer. A null is left out, so the SDK uses the caller's default value."""
    answer = {
        "key": flag.key,
        "reason": REASONS.get(flag.layer, "STATIC"),
        "variant": flag.source,
        "metadata": {"plan": plan_name},
    }
    if flag.rule is not None:
        answer["reason"] = "SPLIT" if "rollout" in flag.rule else "TARGETING_MATCH"
        answer["metadata"] = {"plan": plan_name, "rule": flag.rule["name"]}
    if flag.layer is Layer.RULE_FAILED:
        answer |= RULE_FAILURE
    return answer if flag.value is None else {**answer, "value": flag.value}


def _tagged(response: Response, tag: str, suffix: str = "") -> Response:
    """The response with its ETag. Caches must revalidate it, and shared caches must not store it.

    Raises NotReadable where a replica does not have the flags yet of which an event told.
    """
    told = request.args.get("flagConfigEtag", "").strip('"')
    if told not in ("", tag) and current_transaction().standby is not None:
        raise NotReadable("it has other flags than the event that the request names")
    response.set_etag(tag + suffix)
    response.cache_control.private = True
    response.cache_control.no_cache = True
    response.vary.add("Authorization")
    return response


def _write_failure(error: AppError) -> bytes:
    """OFREP's body of any error; that of a single flag's evaluation has the flag's key."""
    key = (request.view_args or {}).get("key")
    code = error.error_code if isinstance(error, EvaluationFailure) else "GENERAL"
    details = error.detail
    if isinstance(error, Invalid):
        details = "; ".join(entry["msg"] for entry in error.errors)
    named = {} if key is None else {"key": key}
    return json_text.dumps({**named, "errorCode": code, "errorDetails": details})


answer_errors(blp.name, _write_failure)


@blp.record_once
def _describe(state: BlueprintSetupState) -> None:
    for name, schema in ofrep_document.SCHEMAS.items():
        state.app.extensions["api"].spec.components.schema(name, schema)
