"""The operations of the OpenAPI document, from which commands, tools and pages are generated.

A surface makes a :class:`Request` of an operation and gives it to a :data:`Send`, which sends it in
this process or over HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

REFERENCE = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")
JSON = "application/json"
SCALARS = ("string", "integer", "number", "boolean")
NOT_SHOWN = ("version", "updated_at", "updated_by_user_id", "created_by_user_id")
HARMFUL = ("_cancel", "_decline", "_revoke", "_suspend", "rewinds_create")
MAX_COLUMNS = 8  # of a table whose operation names none


class Request(NamedTuple):
    """A request to the API. ``body`` is a JSON value; bytes are sent as they are."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = None


class Answer(NamedTuple):
    """The answer: ``body`` is the JSON value, the text of another media type, or None."""

    status: int
    headers: Mapping[str, str]
    body: Any


Send: TypeAlias = Callable[[Request], Answer]


@dataclass(frozen=True)
class Argument:
    """A parameter, or a field of the body.

    ``schema`` has its references followed; ``nullable`` in it says that null is allowed.
    """

    name: str
    place: str  # path, query, header or body
    schema: Mapping[str, Any]
    description: str
    required: bool


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation, as the document describes it."""

    method: str
    path: str
    about: Mapping[str, Any]
    parameters: tuple[Mapping[str, Any], ...]  # those of the path, too
    schemas: Mapping[str, Any]  # the document's components

    @property
    def name(self) -> str:
        """The operation's id, such as ``users_list``."""
        return str(self.about["operationId"])

    @property
    def group(self) -> str:
        """The operation's tag, such as ``users``."""
        return str(self.about["tags"][0])

    @property
    def summary(self) -> str:
        """The operation's summary, without a full stop."""
        return str(self.about["summary"]).rstrip(".")

    @property
    def clause(self) -> str:
        """The first clause of the summary, for lists."""
        return re.split(r"[;:,] | \(", self.summary)[0]

    @property
    def permission(self) -> str | None:
        """The permission that it requires; None for a public operation."""
        return self.about.get("x-permission")

    @property
    def is_reading(self) -> bool:
        """Whether the operation changes nothing."""
        return self.method == "get"

    @property
    def is_destructive(self) -> bool:
        """Whether it deletes something, or ends what somebody has."""
        return self.method == "delete" or self.name.endswith(HARMFUL)

    @cached_property
    def may_concern_all(self) -> bool:
        """Whether it creates something of all tenants if a platform's credential names none."""
        owner = self.data.get("properties", {}).get("tenant_id", {})
        names = {one.name for one in self.arguments if not one.required}
        return (
            self.method == "post"
            and "tenant_id" in names
            and bool(self.follow(owner).get("nullable"))
        )

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The parameters, then the fields of a JSON body."""
        body = self.follow(self.body_schema or {})
        required = body.get("required", ())
        return (
            *(self._parameter(one) for one in self.parameters),
            *(
                self._argument(name, "body", schema, name in required)
                for name, schema in body.get("properties", {}).items()
            ),
        )

    def names_in(self, place: str) -> list[str]:
        """The names of the parameters in the path, the query or the headers."""
        return [one["name"] for one in self.parameters if one["in"] == place]

    @property
    def media_type(self) -> str | None:
        """The media type of its body; None if it takes none."""
        return next(iter(self.about.get("requestBody", {}).get("content", {})), None)

    @property
    def body_schema(self) -> Mapping[str, Any] | None:
        """The schema of its JSON body, or None."""
        content = self.about.get("requestBody", {}).get("content", {})
        schema: Mapping[str, Any] | None = content.get(JSON, {}).get("schema")
        return schema

    @property
    def needs_body(self) -> bool:
        """Whether a request without a body is refused."""
        return bool(self.about.get("requestBody", {}).get("required"))

    @cached_property
    def answers_json(self) -> bool:
        """Whether a success has a JSON body or none."""
        return all(JSON in content for content in self._contents)

    @cached_property
    def is_list(self) -> bool:
        """Whether a success has several rows."""
        return self.data.get("type") == "array"

    @cached_property
    def page_parameter(self) -> str | None:
        """The parameter that takes ``next_cursor``; None if the operation has no pages."""
        names = [one.name for one in self.arguments if one.name in ("cursor", "after")]
        return names[0] if names and self.is_list else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table: ``x-columns``, or the first scalar fields of a row."""
        if "x-columns" in self.about:
            return tuple(self.about["x-columns"])
        row = self.follow(self.data["items"]) if self.is_list else self.data
        fields = row.get("properties", {}).items()
        scalars = [name for name, schema in fields if self.follow(schema).get("type") in SCALARS]
        return tuple(name for name in scalars if name not in NOT_SHOWN)[:MAX_COLUMNS]

    @cached_property
    def includes(self) -> tuple[str, ...]:
        """The names that ``include=`` takes."""
        for one in self.arguments:
            if one.name == "include":
                return tuple(one.schema["items"]["enum"])
        return ()

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The schema of a successful answer: its ``data``, or the whole body without ``data``."""
        for content in self._contents:
            body = self.follow(content.get(JSON, {}).get("schema", {}))
            return self.follow(body.get("properties", {}).get("data", body))
        return {}

    def request(self, parameters: Mapping[str, Any], body: Any = None) -> Request:
        """The request with these parameters; those that are None are left out.

        Raises ValueError for a parameter that the operation does not have, or a missing part of the
        path. Everything else is checked by the API.
        """
        places = {one["name"]: one for one in self.parameters}
        if unknown := sorted(set(parameters) - set(places)):
            raise ValueError(f"{self.name} has no argument {', '.join(unknown)}.")
        sent: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
        for name, value in parameters.items():
            if value is not None:
                sent[places[name]["in"]] |= _written(places[name], value)
        if missing := [name for name in self.names_in("path") if not sent["path"].get(name)]:
            raise ValueError(f"{self.name} needs {', '.join(missing)}.")
        path = {name: quote(value, safe="") for name, value in sent["path"].items()}
        if isinstance(body, bytes):
            sent["header"]["Content-Type"] = self.media_type or ""
        return Request(
            self.method.upper(), self.path.format(**path), sent["query"], sent["header"], body
        )

    def follow(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with its references followed, and null among its types as ``nullable``."""
        found = dict(schema)
        if reference := found.pop("$ref", None):
            found = {**self.schemas[reference.removeprefix(REFERENCE)], **found}
        choices = [one for one in found.get("anyOf", ()) if one.get("type") != "null"]
        if choices:
            found["nullable"] = len(choices) < len(found.pop("anyOf"))
            found = {**self.follow(choices[0]), **found}
        if isinstance(found.get("type"), list):
            found["nullable"] = "null" in found["type"]
            found["type"] = found["type"][0]
        if "items" in found:
            found["items"] = self.follow(found["items"])
        return found

    @property
    def _contents(self) -> list[Mapping[str, Any]]:
        """The contents of the successes that have a body."""
        answers = self.about["responses"].items()
        return [one["content"] for status, one in answers if status < "3" and one.get("content")]

    def _parameter(self, about: Mapping[str, Any]) -> Argument:
        schema = {**about.get("schema", {}), "description": about.get("description", "")}
        return self._argument(about["name"], about["in"], schema, about.get("required", False))

    def _argument(
        self, name: str, place: str, schema: Mapping[str, Any], required: bool
    ) -> Argument:
        followed = self.follow(schema)
        return Argument(name, place, followed, followed.get("description", ""), required)


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """All operations of an OpenAPI document, in its order."""
    schemas = document["components"]["schemas"]
    return [
        Operation(
            method,
            path,
            item[method],
            (*item.get("parameters", ()), *item[method].get("parameters", ())),
            schemas,
        )
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


def _written(parameter: Mapping[str, Any], value: Any) -> dict[str, str]:
    """A parameter as HTTP sends it: lists with commas, an object as ``name[key]=value``."""
    name = parameter["name"]
    if isinstance(value, Mapping) and parameter.get("style") == "deepObject":
        return {f"{name}[{key}]": as_text(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return {name: ",".join(map(as_text, value))}
    return {name: as_text(value)}


def as_text(value: object) -> str:
    """A value as a URL has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
