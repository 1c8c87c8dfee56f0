"""Every error code is documented for exactly the operations that can answer with it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from app.core.errors import AppError, DatabaseUnavailable
from app.core.http.idempotency import IdempotencyInProgress
from tests.document import operations, view_of

FIELD_LIMITS = {
    "custom_field_limit",
    "searchable_field_limit",
    "email_field_limit",
    "options_limit",
}
IMPOSSIBLE = {
    ("get", "/v1/operations/findings"): {"secrets_key_missing"},  # it is a finding
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
        for value in () if is_of(one, "app.core.http") else named_in(one):
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
            if operation.path.startswith("/ofrep/"):
                expected = set()  # OFREP's own errors
            if operation.codes.keys() != expected:
                wrong[operation.name] = operation.codes.keys() ^ expected

        assert wrong == {}
