"""The OpenAPI document as a source of requests, and as the judge of answers."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jsonschema_rs
from flask import Flask

from app.core.openapi.examples import example_of
from tests.document import CHOICES
from tests.hostile.wire import Answer

METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
JSON = "application/json"
Place = tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """One method of one path."""

    document: "Document"
    method: str
    path: str
    definition: Mapping[str, Any]
    parameters: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def is_guarded(self) -> bool:
        return bool(self.definition.get("security"))

    @property
    def has_own_protocol(self) -> bool:
        """Whether bodies and refusals are those of OFREP."""
        return self.path.startswith("/ofrep/")

    @property
    def writes(self) -> bool:
        return self.method in ("post", "put", "patch", "delete")

    def named(self, place: str) -> dict[str, Mapping[str, Any]]:
        """The parameters of a place: ``path``, ``query`` or ``header``."""
        return {one["name"]: one["schema"] for one in self.parameters if one["in"] == place}

    @property
    def required_query(self) -> dict[str, str]:
        """The query without which the request is refused."""
        return {
            one["name"]: as_text(example_of(one["schema"], self.document.content))
            for one in self.parameters
            if one["in"] == "query"
            and (one.get("required") or one["name"] in CHOICES.get(self.name, ()))
        }

    @cached_property
    def body(self) -> Mapping[str, Any] | None:
        """The body's schema, without references at its top; None where there is no body."""
        content = self.definition.get("requestBody", {}).get("content", {})
        return self.document.resolved(content[JSON]["schema"]) if JSON in content else None

    @property
    def example(self) -> Any:
        """The documented example of the body."""
        return self.definition["requestBody"]["content"][JSON]["example"]

    @property
    def least_body(self) -> dict[str, Any]:
        """The documented example without what may be left out."""
        required = (self.body or {}).get("required", ())
        return {name: self.example[name] for name in required}

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """What a body may hold."""
        return self.body["properties"] if self.body else {}

    @property
    def shown(self) -> Mapping[str, Mapping[str, Any]]:
        """What a successful answer's ``data`` holds; nothing where it is no single resource."""
        for status in ("200", "201", "202"):
            content = self.document.resolved(self.definition["responses"].get(status, {}))
            schema = self.document.resolved(content.get("content", {}).get(JSON, {}).get("schema"))
            data = self.document.resolved(schema.get("properties", {}).get("data"))
            if "properties" in data:
                return data["properties"]
        return {}

    @cached_property
    def statuses(self) -> set[int]:
        """The documented ones."""
        return {int(status) for status in self.definition["responses"]}

    def faults(self, answer: Answer) -> list[str]:
        """What of an answer the document does not say."""
        status = answer.status
        if status >= 500:
            return [f"{status}"]
        if status not in self.statuses:
            return [f"{status} is not documented: {answer.data[:200]!r}"]
        described = self.document.resolved(self.definition["responses"][str(status)])
        forms = described.get("content", {})
        if not forms:
            return [f"{status} has a body"] if answer.data else []
        if answer.mimetype not in forms:
            return [f"{status} is {answer.mimetype}"]
        validator = self._validator(status)
        if validator is None:  # it is no JSON
            return []
        try:
            body = answer.json
        except ValueError as fault:
            return [f"{status} is no JSON: {fault}"]
        return [f"{status}: {error.message[:200]}" for error in validator.iter_errors(body)]

    def _validator(self, status: int) -> Any:
        return self.document.validator(self.method, self.path, status)


class Document:
    """The whole document."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = dict(content)
        self._validators: dict[tuple[str, str, int], Any] = {}

    @classmethod
    def of(cls, app: Flask) -> "Document":
        return cls(app.test_client().get("/openapi.json").get_json())

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(self._operations())

    @property
    def guarded(self) -> tuple[Operation, ...]:
        """The operations that ask for a credential."""
        return tuple(one for one in self.operations if one.is_guarded)

    def operation(self, method: str, path: str) -> Operation | None:
        found = [one for one in self.operations if (one.method, one.path) == (method, path)]
        return found[0] if found else None

    def resolved(self, part: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """``part``, or what it refers to."""
        while part is not None and "$ref" in part:
            target: Any = self.content
            for name in part["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            part = target
        return part or {}

    def fits(self, value: Any, schema: Mapping[str, Any]) -> bool:
        """Whether a value is what ``schema`` says."""
        whole = {"allOf": [schema], "components": self.content["components"]}
        return jsonschema_rs.validator_for(whole, validate_formats=True).is_valid(value)

    def example(self, schema: Mapping[str, Any]) -> Any:
        return example_of(dict(schema), self.content)

    def validator(self, method: str, path: str, status: int) -> Any:
        """The validator of an answer's body; None where the document gives it none."""
        key = (method, path, status)
        if key not in self._validators:
            response = self.resolved(self.content["paths"][path][method]["responses"][str(status)])
            schema = response.get("content", {}).get(JSON, {}).get("schema")
            self._validators[key] = schema and jsonschema_rs.validator_for(
                {"allOf": [schema], "components": self.content["components"]}, validate_formats=True
            )
        return self._validators[key]

    def places(self, schema: Mapping[str, Any], at: Place = ()) -> Iterator[Place]:
        """Where in a body of ``schema`` a value can stand, at every depth."""
        schema = self.resolved(schema)
        for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from self.places(part, at)
        for name, part in schema.get("properties", {}).items():
            yield (*at, name)
            yield from self.places(part, (*at, name))
        if "items" in schema:
            yield (*at, 0)
            yield from self.places(schema["items"], (*at, 0))
        if schema.get("additionalProperties") is True:
            yield (*at, "any")

    def below(self, schema: Mapping[str, Any], step: str | int) -> Mapping[str, Any]:
        """The schema of what stands at ``step`` of a value of ``schema``."""
        schema = self.resolved(schema)
        for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            found = self.below(part, step)
            if found:
                return found
        found = (
            schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        )
        return self.resolved(found)

    def _operations(self) -> Iterator[Operation]:
        for path, methods in self.content["paths"].items():
            shared = methods.get("parameters", [])
            for method in METHODS:
                if method in methods:
                    parameters = (*shared, *methods[method].get("parameters", []))
                    yield Operation(self, method, path, methods[method], parameters)


def as_text(value: Any) -> str:
    """A value as it stands in a query."""
    return json.dumps(value) if isinstance(value, bool) else str(value)
