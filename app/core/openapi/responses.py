"""Completes an operation of the OpenAPI document: security, headers, error responses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from flask_smorest.utils import resolve_schema_instance

from app.core.errors import AppError, DatabaseUnavailable, NotFound, PreconditionFailed
from app.core.http import idempotency
from app.core.http.endpoint import Access, Endpoint
from app.core.openapi.components import (
    CONSISTENCY,
    CONSISTENCY_ANSWER,
    DESCRIPTIONS,
    DETAILS,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    INVALID,
    INVALID_OR_KEY_REUSED,
    INVALID_OR_UNREADABLE,
    coded_answer,
    refusal,
)

RESOURCES = {
    "address": "suppression", "connection_id": "scim_connection", "delivery": "webhook_delivery",
    "endpoint_id": "webhook_endpoint", "event_id": "webhook_event", "evt_id": "event",
    "feature": "limit", "field_id": "custom_field", "key_id": "api_key",
    "permission_key": "permission", "preset_id": "plan_preset", "resource_type": "resource",
    "stream_id": "log_stream",
    "key": "tenant",  # an unknown flag is not a 404, so only the tenant can be missing
}  # fmt: skip
"""Path parameter -> resource, where the resource is not the parameter's name without ``_id``."""
WITHOUT_VERSION = ("usage_holds_", "usage_leases_", "scim_connection_tests_")
"""How operations begin that change no resource with a version: no ``If-Match``, no ``ETag`` of changes."""


def complete(
    doc: dict[str, Any], described: Collection[str], endpoint: Endpoint, method: str
) -> dict[str, Any]:
    """Add the common headers, error responses and security to an operation's documentation.

    ``described``: the statuses that the view documents itself; their responses stay unchanged.
    """
    access, rule, guarded = endpoint.access, endpoint.rule, endpoint.is_guarded
    is_list = endpoint.answer is not None and endpoint.answer.is_list
    has_version = not endpoint.operation_id.startswith(WITHOUT_VERSION)
    names_row = "_id>" in rule or "_key>" in rule
    has_tag = not is_list if method == "get" else has_version and names_row
    is_read = method == "get" or endpoint.only_reads
    doc["security"] = [{name: []} for name in access.credentials]
    if access.permission is not None:
        doc["x-permission"] = str(access.permission)
    if guarded:
        doc.setdefault("parameters", []).extend(_headers(has_tag, is_read, method))
    responses = doc.setdefault("responses", {})
    if guarded and (doc.get("parameters") or "requestBody" in doc or "<" in rule):
        responses.setdefault(422, INVALID)
    if guarded and method.upper() in idempotency.METHODS:
        responses[422] = INVALID_OR_KEY_REUSED
    if endpoint.invalid_status != 422:
        del responses[422]
        responses[str(endpoint.invalid_status)] = INVALID_OR_UNREADABLE
    for status in _error_statuses(doc, rule, method) if guarded else ():
        responses.setdefault(str(status), refusal(DESCRIPTIONS[status], DETAILS[status]))
    common = _common_errors(has_tag, method, access) if guarded else ()
    missing = _missing_rows(doc, rule) if guarded and not endpoint.is_of_contract else ()
    errors = sorted(
        {*common, *missing, *endpoint.errors}, key=lambda error: (error.status, error.code or "")
    )
    for status, of_status in groupby(errors, key=lambda error: error.status):
        responses[str(status)] = coded_answer(DESCRIPTIONS[status], list(of_status))
    if guarded and method == "get" and has_tag:
        responses.setdefault("304", {"description": "`If-None-Match` names the current version."})
    if guarded:
        for status, answer in responses.items():
            has_new_tag = has_tag or (has_version and str(status) == "201")
            found = _answer_headers(str(status), has_new_tag, is_read, method)
            if found:
                answer.setdefault("headers", {}).update(found)
    doc["responses"] = {
        status: answer for status, answer in responses.items() if str(status) not in described
    }
    return doc


def _headers(has_tag: bool, is_read: bool, method: str) -> Iterator[dict[str, Any]]:
    if has_tag:
        yield IF_NONE_MATCH if method == "get" else IF_MATCH
    if method.upper() in idempotency.METHODS:
        yield IDEMPOTENCY_KEY
    if is_read:
        yield CONSISTENCY


def _answer_headers(status: str, has_tag: bool, is_read: bool, method: str) -> dict[str, Any]:
    """The headers of the answer with this status, except those that every answer has."""
    found: dict[str, Any] = {}
    if has_tag and (status == "201" or (status == "200" and method in ("get", "patch"))):
        found["ETag"] = {"$ref": "#/components/headers/ETag"}
    if status == "201":
        found["Location"] = {"$ref": "#/components/headers/Location"}
    if status in ("429", "503"):
        found["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    if status.startswith("2") and not is_read:
        found |= CONSISTENCY_ANSWER
    return found


def _common_errors(has_tag: bool, method: str, access: Access) -> Iterator[type[AppError]]:
    """The errors with a ``code`` that every guarded endpoint can answer."""
    yield from access.errors
    yield DatabaseUnavailable
    if method.upper() in idempotency.METHODS:
        yield idempotency.IdempotencyInProgress
    if method != "get" and has_tag:
        yield PreconditionFailed


def _missing_rows(doc: dict[str, Any], rule: str) -> Iterator[type[AppError]]:
    """The 404 errors of the resources that the path (at most one) and the query name."""
    name = rule.partition("<")[2].partition(">")[0].rpartition(":")[2]
    if name:
        yield NotFound.of(RESOURCES.get(name, name.removesuffix("_id")))
    if _chooses_tenant(doc):
        yield NotFound.of("tenant")


def _error_statuses(doc: dict[str, Any], rule: str, method: str) -> Iterator[int]:
    yield from (401, 429)
    if "requestBody" in doc:
        yield 400
    if "<" in rule or _chooses_tenant(doc):
        yield 404
    if method != "get":
        yield 413


def _chooses_tenant(doc: dict[str, Any]) -> bool:
    """Whether ``?tenant_id=`` chooses the tenant. In a list it only filters, without a 404."""
    for parameter in doc.get("parameters", ()):
        if parameter["in"] == "query" and "name" not in parameter:  # others are JSON, not a schema
            fields = resolve_schema_instance(parameter["schema"]).fields
            if "tenant_id" in fields and "cursor" not in fields:
                return True
    return False
