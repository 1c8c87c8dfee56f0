"""Every error code is documented for exactly the operations that can answer with it."""

import ast
import inspect
import textwrap
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import pytest

from app.core.clock import utcnow
from app.core.errors import AppError, DatabaseUnavailable
from app.core.http.idempotency import IdempotencyInProgress
from tests.document import IGNORE_UNKNOWN_QUERY, operations, view_of
from tests.factories import create_preset, create_tenant, platform_token

FIELD_LIMITS = {
    "custom_field_limit",
    "searchable_field_limit",
    "email_field_limit",
    "options_limit",
}
NEW_MEMBER = {"idp_membership_id_taken", "idp_user_id_taken", "membership_exists"}
IMPOSSIBLE = {
    ("get", "/v1/operations/findings"): {"secrets_key_missing"},  # it is a finding
    ("post", "/webhooks/billing/{provider}"): {"certificate_unavailable"},  # they need none
    ("patch", "/v1/tenants/{tenant_id}/active"): {
        "slug_taken",
        "idp_org_id_taken",
        "idp_org_id_deleted",
    },
    ("post", "/v1/tenants/{tenant_id}/suspend"): {
        "slug_taken",
        "idp_org_id_taken",
        "idp_org_id_deleted",
    },
    ("post", "/v1/invitations/accept"): {
        "idp_membership_id_taken",
        "idp_user_id_taken",
        "last_owner",
        "membership_exists",
        "provider_field",
    },
    # The tenant's lock keeps other users and memberships away, and without a seat it suggests.
    ("post", "/v1/domains/{domain_id}/sweep"): {*NEW_MEMBER, "seat_limit"},
    ("post", "/v1/join-requests/{join_request_id}/accept"): NEW_MEMBER,
    ("post", "/v1/users"): {"erasure_requested"},
    ("delete", "/v1/users/{user_id}"): {
        "idp_user_id_taken",
        "provider_field",
        "email_taken",
        "erasure_requested",
        "managed_by_directory",
        "seat_limit",
    },
    ("patch", "/v1/memberships/tenant/{membership_id}/role"): {
        "membership_exists",
        "idp_membership_id_taken",
        "seat_limit",
    },
    ("patch", "/v1/memberships/tenant/{membership_id}/active"): {
        "membership_exists",
        "idp_membership_id_taken",
    },
    ("post", "/v1/custom-fields/reorder"): FIELD_LIMITS,
    ("post", "/v1/custom-fields/{field_id}/archive"): FIELD_LIMITS,
    ("post", "/v1/custom-fields/{field_id}/restore"): FIELD_LIMITS,
}
"""Codes of a function that the operation calls with values to which the rule does not apply."""


@cache
def reachable(function: FunctionType) -> frozenset[type[AppError]]:
    """The errors with a code that a function and what it decorates name, or functions of ours there."""
    found: set[type[AppError]] = set()
    seen: set[FunctionType] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if is_of(one, "app.core.http") or one.__name__ == "<lambda>":
            continue
        for value in named_in(one):
            for part in value.values() if isinstance(value, dict) else [value]:
                if inspect.isclass(part) and issubclass(part, AppError) and part.code:
                    found.add(part)
                elif isinstance(part, FunctionType) and is_of(part, "app"):
                    waiting.append(part)
    return frozenset(found)


def is_of(function: FunctionType, package: str) -> bool:
    """Whether a function was defined in a package."""
    return f"{function.__globals__['__name__']}.".startswith(f"{package}.")


def named_in(function: FunctionType) -> Iterator[Any]:
    """The values of the global names in a function's body, also of ``module.name``."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function.__code__))).body
    for node in (one for part in definition.body for one in ast.walk(part)):
        if isinstance(node, ast.Name):
            yield function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = function.__globals__.get(node.value.id)
            if isinstance(module, ModuleType):
                yield getattr(module, node.attr, None)


class TestCodes:
    def test_are_documented_for_the_operations_that_can_answer_them(self, app):
        wrong = {}
        for operation in operations(app.test_client().get("/openapi.json").get_json()):
            view = view_of(app, operation)
            around = {DatabaseUnavailable, *view.access.errors}
            if operation.takes_an_idempotency_key:
                around.add(IdempotencyInProgress)
            own = {error.code for error in reachable(view.view)}
            own -= IMPOSSIBLE.get((operation.method, operation.path), set())
            expected = own | {error.code for error in around}
            if operation.permission is None and not own:
                expected = set()  # /healthz, /readyz, /metrics
            if operation.path.startswith("/ofrep/v1/evaluate/"):
                expected = set()  # OFREP's own errors
            # The others are NotFound's, which the tests' client compares in each answer.
            codes = {code for code in operation.codes if not code.endswith("_not_found")}
            if codes != expected:
                wrong[operation.name] = codes ^ expected

        assert wrong == {}


CREATING = {
    "PUT /v1/permissions/{permission_key}",
    "PUT /v1/resources/{resource_type}/{resource_id}",
}
PLAIN = {"detail": "Not Found"}
EARLY = datetime(2026, 1, 1, tzinfo=UTC)  # before the moments of examples
OTHERWISE = {
    "GET /v1/events",
    "GET /v1/events/stream",
    "GET /v1/search",
    "GET /v1/usage/days",
    "POST /v1/memberships/tenant",
}
"""They filter by the tenant, or look for the user or the limit first."""


class TestNotFound:
    @pytest.mark.parametrize("row_id", ["unknown", "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"])
    def test_says_what_the_path_names(self, app, api, row_id):
        """Except the nine operations of the contract: FastAPI's answer has no code."""
        create_preset(beta=False)
        query = {"tenant_id": str(create_tenant().id)}
        token, wrong, count = platform_token(), {}, 0
        for one in operations(app.test_client().get("/openapi.json").get_json()):
            if not one.names_a_row or one.permission is None or one.path.startswith("/ofrep/"):
                continue
            if one.path.endswith("/{key}/explain") or one.name in CREATING:
                continue  # flags that do not exist are explained too
            answer = api.request(
                one.method.upper(),
                one.path_of(row_id),
                token=token,
                query_string={**one.query, **(query if one.takes_a_tenant else {})},
                json=one.body,
            )
            count += 1
            code = (answer.get_json(silent=True) or {}).get("code")
            allowed = [code for code in one.codes if code.endswith("_not_found")] or [None]
            expected = {**PLAIN, "code": code} if allowed != [None] else PLAIN
            is_named = "{tenant_id}" in one.path or code != "tenant_not_found"
            if answer.get_json(silent=True) != expected or code not in allowed or not is_named:
                wrong[one.name] = answer.text
            if (allowed == [None]) != (one.name in IGNORE_UNKNOWN_QUERY):
                wrong[one.name] = "documented wrongly"

        assert wrong == {}
        assert count > 40

    def test_says_that_the_tenant_is_unknown(self, app, api):
        query = {"tenant_id": str(uuid.uuid4())}
        token, wrong, count = platform_token(), {}, 0
        for one in operations(app.test_client().get("/openapi.json").get_json()):
            is_choice = "404" in one.about["responses"] and not one.names_a_row
            if not is_choice or not one.takes_a_tenant or one.name in OTHERWISE:
                continue
            query_string, body = {**one.query, **query}, one.body
            if "as_of" in one.parameters("query"):
                query_string["as_of"] = (
                    utcnow().isoformat()
                )  # without it, lists filter by the tenant
            answer = api.request(
                one.method.upper(), one.path, token=token, query_string=query_string, json=body
            )
            count += 1
            found = (answer.status_code, (answer.get_json(silent=True) or {}).get("code"))
            if found != (404, "tenant_not_found"):
                wrong[one.name] = answer.text

        assert wrong == {}
        assert count > 5

    def test_an_unknown_path_has_no_code(self, api):
        answer = api.get("/v1/tenant", token=platform_token())

        assert (answer.status_code, answer.get_json()) == (404, PLAIN)


class TestTenantsInPaths:
    def test_have_an_id_an_organization_or_a_slug(self, app, api):
        token, wrong, count = platform_token(), {}, 0
        for one in operations(app.test_client().get("/openapi.json").get_json()):
            if "{tenant_id}" not in one.path:
                continue
            count += 1
            statuses = []
            for name in ("id", "idp_org_id", "slug"):
                tenant = create_tenant(is_active=False, created_at=EARLY)
                answer = api.request(
                    one.method.upper(),
                    one.path_of(str(getattr(tenant, name))),
                    token=token,
                    query_string=one.query,
                    json={"name": "New"}
                    if one.name == "PATCH /v1/tenants/{tenant_id}"
                    else one.body,
                )
                statuses.append((answer.status_code, answer.text.count("tenant_not_found")))
            if statuses != [(answer.status_code, 0)] * 3:
                wrong[one.name] = statuses

        assert wrong == {}
        assert count > 10
