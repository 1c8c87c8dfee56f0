"""Serves SCIM with `scim2-server`: Flask's request in, the service's answer out.

This module loads `scim2-server` and pydantic, so only :mod:`app.scim.endpoints` imports it, when
the first request comes.
"""

from __future__ import annotations

from typing import Any, Union

from flask import Request, Response
from pydantic import ValidationError
from scim2_models import (
    BulkRequest,
    BulkResponse,
    Error,
    Group,
    ListResponse,
    Resource,
    ResourceType,
    ResponseParameters,
    SCIMException,
    SearchRequest,
)
from scim2_server.conditions import Conditions
from scim2_server.errors import MethodNotAllowedException
from scim2_server.handler import ScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.routing import Operation, Target
from scim2_server.service import ScimService

from app.auth.guard import current_principal
from app.connections.models import Connection
from app.core import json_text
from app.core.errors import AppError
from app.core.http.parser import parse_json, query_values
from app.core.http.routing import own_address
from app.core.validation.scalars import unstorable
from app.scim import bounds, member_changes, person_changes
from app.scim.access import check_not_suspended
from app.scim.errors import ScimError, invalid_value, translate
from app.scim.models import ENTERPRISE
from app.scim.resources import PROVIDER
from app.scim.storage import Storage

CURSOR_SECRET = "scim"  # noqa: S105
"""The library encrypts cursors. These need no secret: one is only the id after which to go on, and
row-level security decides what its sender sees."""

BULK = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
CORE = "urn:ietf:params:scim:schemas:core:2.0:"
OLD_CORE = "urn:scim:schemas:core:1.0"
OLD_ENTERPRISE = "urn:scim:schemas:extension:enterprise:1.0"
WITH_RESOURCES = {"users": "User", "groups": "Group"}
ENDING = {Operation.delete, Operation.replace, Operation.patch}
"""What a suspended tenant's directory may do; the storage sees that a change only ends people."""


class Service(ScimService):
    """The protocol with this service's errors, and with the rule for suspended tenants."""

    def authorize(self, request: ScimRequest, target: Target, resource_type: ResourceType) -> None:
        """For a suspended tenant, only DELETE and changes that end a person are allowed."""
        is_user = resource_type.name == "User"
        if target.operation is not Operation.delete and not (
            is_user and target.operation in ENDING
        ):
            check_not_suspended(current_principal())

    def apply_replacement(
        self, current: Resource, replacement: Resource, conditions: Conditions
    ) -> Resource | None:
        """The new state, or None where it is the same. A PUT without ``active`` keeps it."""
        if getattr(replacement, "active", False) is None:
            replacement.active = getattr(current, "active", None)  # type: ignore[attr-defined]
        return _checked(current, super().apply_replacement(current, replacement, conditions))

    def apply_patch(
        self, current: Resource, patch_op: Any, conditions: Conditions
    ) -> Resource | None:
        """The new state, or None where it is the same."""
        member_changes.check_number(patch_op)
        self.check_preconditions(current, "PATCH", conditions)
        if isinstance(current, Group):
            is_changed = member_changes.apply(current, patch_op)
        else:
            is_changed = person_changes.apply(current, patch_op)
        return _checked(current, current if is_changed else None)

    def patch_response(
        self, base_url: str, resource: Resource, response_parameters: ResponseParameters
    ) -> ScimResponse:
        """200 with the resource, which directories can read where they expect a 204."""
        return self.replacement_response(base_url, resource, response_parameters)

    def reference_location(self, base_url: str, reference: str) -> str:
        """The URL of a reference; what cannot be read as a URL is answered as it was sent."""
        try:
            return super().reference_location(base_url, reference)
        except ValueError:
            return reference

    @staticmethod
    def error_of(exception: Exception) -> Error:
        """The body of an operation's error in a bulk request.

        What is not an error of the client is raised: it ends the whole request.
        """
        if isinstance(exception, SCIMException):
            exception = _as_error(exception)
        if not isinstance(exception, AppError):
            raise exception
        known = translate(exception)
        scim_type = getattr(known, "scim_type", None)
        return Error(status=known.status, scim_type=scim_type, detail=known.detail)


SERVICE = Service(PROVIDER, secret=CURSOR_SECRET)


def _message_types() -> list[Any]:
    models = SERVICE.get_models()
    of_each: tuple[Any, ...] = (ResponseParameters, SearchRequest)
    of_all: tuple[Any, ...] = (BulkRequest, BulkResponse, ListResponse, SearchRequest)
    found = [generic[model] for generic in of_each for model in models]
    return found + [generic[Union[tuple(models)]] for generic in of_all]  # noqa: UP007


MESSAGE_TYPES = _message_types()
"""pydantic would make them again for each request, because it keeps no type that nobody refers to."""


def serve(request: Request, path: str, connection: Connection) -> Response:
    """The answer to a request at ``path`` below the base; raises AppError."""
    try:
        return _serve(request, path, connection)
    except SCIMException as fault:
        raise _as_error(fault) from fault
    except AppError as fault:
        raise translate(fault) from fault
    except RecursionError:
        raise ScimError(400, "The request is nested too deeply.") from None


def _serve(request: Request, path: str, connection: Connection) -> Response:
    principal = current_principal()
    bounds.check_tags(request.headers)
    bounds.begin_visits()
    scim_request = ScimRequest(
        method="GET" if request.method == "HEAD" else request.method,
        base_url=f"{own_address(request)}/scim/v2",
        path=path,
        query=_query(request),
        headers=list(request.headers.items()),
    )
    operation = SERVICE.match(scim_request).operation
    if operation not in ENDING and operation is not Operation.bulk:
        check_not_suspended(principal)
    scim_request.body = _body(request, path)
    storage = Storage(connection, principal.actor, is_bulk=operation is Operation.bulk)
    answer = ScimHandler(SERVICE, storage).handle(scim_request)
    body = b"" if answer.body is None else json_text.dumps(answer.body)
    return Response(body, int(answer.status), answer.headers)


def _query(request: Request) -> dict[str, str]:
    values = query_values(request)
    bounds.check_body(values)
    for value in values.values():
        if unstorable(value):
            raise invalid_value("A query parameter has text that cannot be stored.")
    return values


def _body(request: Request, path: str) -> bytes:
    """The JSON body in the standard's form; raises ScimError where it cannot be stored."""
    raw = request.get_data()
    if not raw:
        return raw
    SERVICE.ensure_json(request.headers.get("Content-Type"))
    try:
        body = parse_json(raw)
    except AppError as fault:
        raise ScimError(400, "The body is not valid JSON.", scim_type="invalidSyntax") from fault
    if unstorable(body):
        raise invalid_value("The body has text or a number that cannot be stored.")
    bounds.check_body(body)
    endpoint = path.strip("/").partition("/")[0].lower()
    if endpoint == "bulk" and isinstance(body, dict):
        schemas = body.get("schemas")
        if not isinstance(schemas, list) or BULK not in schemas:
            raise invalid_value(f"schemas must have {BULK}.")
    if endpoint in ("users", "bulk"):
        person_changes.leave_out_roles(body)
    if endpoint in WITH_RESOURCES:
        body = _with_new_schemas(body, WITH_RESOURCES[endpoint])
    return json_text.dumps(body)


def _with_new_schemas(body: object, resource_name: str) -> object:
    """The body with the schemas of SCIM 2 where it has those of SCIM 1 (OneLogin)."""
    if not isinstance(body, dict):
        return body
    changed = {ENTERPRISE if name == OLD_ENTERPRISE else name: body[name] for name in body}
    schemas = changed.get("schemas")
    if isinstance(schemas, list):
        own = f"{CORE}{resource_name}"
        renamed = {OLD_CORE: own, CORE: own, OLD_ENTERPRISE: ENTERPRISE}
        changed["schemas"] = [
            renamed.get(one, one) if isinstance(one, str) else one for one in schemas
        ]
    return changed


def _checked(current: Resource, changed: Resource | None) -> Resource | None:
    """``changed``; raises TenantSuspended unless the person is not active afterwards."""
    state = current if changed is None else changed
    if getattr(state, "active", None) is not False:
        check_not_suspended(current_principal())
    return changed


def _as_error(fault: SCIMException) -> ScimError:
    """The library's error, without pydantic's text; an unexpected exception was raised as it is."""
    is_pydantic = isinstance(fault.__cause__, ValidationError) and fault.detail == str(
        fault.__cause__
    )
    detail = "A value is not of its attribute's type." if is_pydantic else fault.detail
    error = ScimError(fault.status, detail, scim_type=fault.scim_type or None)
    if isinstance(fault, MethodNotAllowedException):
        error.headers["Allow"] = ", ".join(fault.allowed)
    return error
