"""The OpenAPI document as a list of requests that a client could send."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote

from flask import Flask

from app.core.openapi.examples import example_of

METHODS = ("get", "post", "put", "patch", "delete")


IGNORE_UNKNOWN_QUERY = {
    "PATCH /v1/billing/subscriptions/{subscription_id}",
    "POST /v1/billing/subscriptions/{subscription_id}/cancel",
    "POST /v1/custom-fields/{field_id}/restore",
    "PATCH /v1/tenants/{tenant_id}/active",
    "PATCH /v1/users/{user_id}/meta_data",
    "PATCH /v1/memberships/tenant/{membership_id}/role",
    "PATCH /v1/billing/flags/overrides/{override_id}",
    "POST /v1/app-communications/webhooks/emailprovider",
}
"""The operations of /v1 that ignore query parameters that they do not have."""


CHOICES = {"GET /v1/access/explain": ("subject",)}
"""Of an operation that requires one of several parameters, one of them."""
MAY_BE_MISSING = {"GET /v1/tenants/{tenant_id}/deletion"}
"""The reads that are 404 for most rows."""


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    method: str
    path: str
    about: dict[str, Any]
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def permission(self) -> str | None:
        """The permission that it asks for; None for a public operation."""
        return self.about.get("x-permission")

    @property
    def is_for_the_platform(self) -> bool:
        """Whether no tenant's credential will do."""
        says_so = "of a platform credential" in self.about.get("description", "")
        return says_so or self.permission == "platform:superadmin"

    @property
    def is_stream(self) -> bool:
        """Whether only the stream process answers it."""
        return "421" in self.about["responses"]

    @property
    def is_change(self) -> bool:
        return self.method != "get"

    @property
    def collection(self) -> str:
        """Where the rows that the path names are listed."""
        return self.path.partition("/{")[0]

    @property
    def names_a_row(self) -> bool:
        return "{" in self.path

    @property
    def takes_a_tenant(self) -> bool:
        return "tenant_id" in self.parameters("query")

    @cached_property
    def query(self) -> dict[str, Any]:
        """An example of the required parameters, and of :data:`CHOICES`."""
        return {
            name: as_text(example_of(one["schema"], self.document))
            for name, one in self.parameters("query").items()
            if one.get("required") or name in CHOICES.get(self.name, ())
        }

    @cached_property
    def body(self) -> Any:
        """The body's example; None where it takes none."""
        content = self.about.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("example")

    @cached_property
    def codes(self) -> dict[str, Any]:
        """The example of each error with a ``code``."""
        found = {}
        for answer in self.about["responses"].values():
            content = answer.get("content", {}).get("application/json", {})
            codes = content.get("schema", {}).get("properties", {}).get("code", {}).get("enum", ())
            found |= {code: content["examples"][code]["value"] for code in codes}
        return found

    @property
    def takes_an_idempotency_key(self) -> bool:
        return self.takes_header("Idempotency-Key")

    def takes_header(self, name: str) -> bool:
        return name in self.parameters("header")

    def path_of(self, row_id: str) -> str:
        return re.sub(r"\{\w+\}", quote(row_id, safe=""), self.path)

    def parameters(self, place: str) -> dict[str, dict[str, Any]]:
        """Those of a place by name: ``path``, ``query`` or ``header``."""
        shared = self.document["paths"][self.path].get("parameters", ())
        every = (*shared, *self.about.get("parameters", ()))
        return {one["name"]: one for one in every if one["in"] == place}


def operations(document: dict[str, Any], kind: type = Operation) -> list[Any]:
    """Every operation of an OpenAPI document, as a :class:`Operation` or of another ``kind``."""
    return [
        kind(method, path, item[method], document)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


def operation_of(app: Flask, method: str, path: str) -> Operation:
    """The operation that answers a request."""
    rule, _ = app.url_map.bind("").match(path, method=method, return_rule=True)
    return _by_rule(app)[method.lower(), re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)]


@cache
def _by_rule(app: Flask) -> dict[tuple[str, str], Operation]:
    document = app.test_client().get("/openapi.json").get_json()
    return {(one.method, one.path): one for one in operations(document)}


def view_of(app: Flask, operation: Operation) -> Any:
    """The function behind an operation."""
    rule = app.url_map.bind("").match(
        operation.path_of("x"), method=operation.method, return_rule=True
    )[0]
    return app.view_functions[rule.endpoint]


def as_text(value: Any) -> str:
    """A value as it stands in a query."""
    return str(value).lower() if isinstance(value, bool) else str(value)


ENDPOINTS = "/v1/webhook-endpoints"
HOLDS = "/v1/usage/holds"


def resolved(content: Mapping[str, Any], part: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """``part``, or what it refers to."""
    while part is not None and "$ref" in part:
        target: Any = content
        for name in part["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        part = target
    return part or {}


def find_row(api: Any, operation: Operation, tenant_id: str, token: str) -> str:
    """What names the newest row of that tenant in the operation's path."""
    if operation.collection == "/v1/tenants":
        return tenant_id
    if operation.collection == "/v1/events":
        api.sequence()
    if operation.collection == "/v1/webhook-deliveries":
        owner = find_row(api, replace(operation, path=ENDPOINTS + "/{id}"), tenant_id, token)
        path = f"{ENDPOINTS}/{owner}/deliveries"
        return str(api.get(path, token=token).get_json()["data"][0]["id"])
    if operation.collection == "/v1/usage/leases":
        listed = api.get(HOLDS, token=token, query_string={"tenant_id": tenant_id}).get_json()
        return next(str(one["id"]) for one in listed["data"] if one["kind"] == "lease")
    listing = operation.document["paths"][operation.collection]["get"]
    taken = {one["name"] for one in listing["parameters"]}
    known = {"limit": "100", "tenant_id": tenant_id}
    query = {name: value for name, value in known.items() if name in taken}
    listed = api.get(operation.collection, token=token, query_string=query).get_json()["data"]
    assert listed, f"no row for {operation.name}"
    name, *_ = re.findall(r"\{(\w+)\}", operation.path)
    return str(listed[-1].get(name, listed[-1].get("id", listed[-1].get("key"))))
