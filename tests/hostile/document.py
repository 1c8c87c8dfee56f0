"""The OpenAPI document as a source of requests, and as the judge of answers."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import jsonschema_rs
from flask import Flask

from app.core.openapi.examples import example_of
from tests import document
from tests.document import resolved
from tests.hostile.wire import Answer

JSON = "application/json"
Place = tuple[str | int, ...]


class Operation(document.Operation):
    """An operation with the schemas of its body and of its answers."""

    @property
    def has_own_protocol(self) -> bool:
        """Whether bodies and refusals are those of OFREP, or of AuthZEN."""
        return self.path.startswith(("/ofrep/v1/evaluate/", "/access/v1/"))

    def named(self, place: str) -> dict[str, Mapping[str, Any]]:
        """The schemas of the parameters of a place: ``path``, ``query`` or ``header``."""
        return {name: one["schema"] for name, one in self.parameters(place).items()}

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The body's, without references at its top; empty where there is no JSON body."""
        content = self.about.get("requestBody", {}).get("content", {})
        return resolved(self.document, content.get(JSON, {}).get("schema"))

    @property
    def least_body(self) -> dict[str, Any]:
        """The documented example without what may be left out."""
        return {name: self.body[name] for name in self.schema.get("required", ())}

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """What a body may hold."""
        return self.schema.get("properties", {})

    @property
    def shown(self) -> Mapping[str, Mapping[str, Any]]:
        """What a successful answer's ``data`` holds; nothing where it is no single resource."""
        for status in (200, 201, 202):
            schema = resolved(self.document, self._media(status).get(JSON, {}).get("schema"))
            data = resolved(self.document, schema.get("properties", {}).get("data"))
            if "properties" in data:
                return data["properties"]
        return {}

    def faults(self, answer: Answer) -> list[str]:
        """What of an answer the document does not say."""
        status = answer.status
        if status >= 500:
            return [f"{status}"]
        if str(status) not in self.about["responses"]:
            return [f"{status} is not documented: {answer.data[:200]!r}"]
        forms = self._media(status)
        if not forms:
            return [f"{status} has a body"] if answer.data else []
        if answer.mimetype not in forms:
            return [f"{status} is {answer.mimetype}"]
        validator = self._validator(status)
        if not validator:  # it is no JSON
            return []
        try:
            body = answer.json
        except ValueError as fault:
            return [f"{status} is no JSON: {fault}"]
        return [f"{status}: {error.message[:200]}" for error in validator.iter_errors(body)]

    def _media(self, status: int) -> Mapping[str, Any]:
        """The forms that an answer has, by media type."""
        return resolved(self.document, self.about["responses"].get(str(status))).get("content", {})

    def _validator(self, status: int) -> Any:
        """The validator of an answer's body; nothing where the document gives it none."""
        if status not in self._validators:
            schema = self._media(status).get(JSON, {}).get("schema")
            self._validators[status] = schema and validator_of(self.document, schema)
        return self._validators[status]

    @cached_property
    def _validators(self) -> dict[int, Any]:
        return {}


class Document:
    """The whole document."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.operations = document.operations(content, Operation)
        self.guarded = [one for one in self.operations if one.permission]

    @classmethod
    def of(cls, app: Flask) -> "Document":
        return cls(app.test_client().get("/openapi.json").get_json())

    def operation(self, method: str, path: str) -> Operation | None:
        found = [one for one in self.operations if (one.method, one.path) == (method, path)]
        return found[0] if found else None

    def resolved(self, part: Mapping[str, Any] | None) -> Mapping[str, Any]:
        return resolved(self.content, part)

    def fits(self, value: Any, schema: Mapping[str, Any]) -> bool:
        """Whether a value is what ``schema`` says."""
        return validator_of(self.content, schema).is_valid(value)

    def example(self, schema: Mapping[str, Any]) -> Any:
        return example_of(dict(schema), self.content)

    def places(
        self, schema: Mapping[str, Any], at: Place = (), above: tuple[str, ...] = ()
    ) -> Iterator[Place]:
        """Where in a body of ``schema`` a value can stand, at every depth.

        A schema that contains itself, as conditions do, is entered once.
        """
        name = schema.get("$ref", "")
        if name in above:
            return
        above = (*above, name) if name else above
        schema = self.resolved(schema)
        for part in alternatives(schema):
            yield from self.places(part, at, above)
        for name, part in schema.get("properties", {}).items():
            yield (*at, name)
            yield from self.places(part, (*at, name), above)
        if "items" in schema:
            yield (*at, 0)
            yield from self.places(schema["items"], (*at, 0), above)
        if schema.get("additionalProperties") is True:
            yield (*at, "any")

    def below(self, schema: Mapping[str, Any], step: str | int) -> Mapping[str, Any]:
        """The schema of what stands at ``step`` of a value of ``schema``."""
        schema = self.resolved(schema)
        for part in alternatives(schema):
            if found := self.below(part, step):
                return found
        parts = schema.get("properties", {})
        return self.resolved(schema.get("items") if isinstance(step, int) else parts.get(step))


def alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for kind in ("anyOf", "oneOf", "allOf") for part in schema.get(kind, ())]


def validator_of(content: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    whole = {"allOf": [schema], "components": content["components"]}
    return jsonschema_rs.validator_for(whole, validate_formats=True)
