"""Tools made from the OpenAPI document: one for each operation with JSON or no body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from flask import Flask
from werkzeug.test import Client

REFERENCE = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")
READING = "get"
SENT_HEADERS = ("If-Match", "Idempotency-Key")  # which an agent may set


@dataclass(frozen=True)
class Operation:
    """One operation of the API. ``input_schema`` is the JSON Schema of a tool's arguments."""

    name: str
    method: str
    path: str
    tags: tuple[str, ...]
    description: str
    parameters: Mapping[str, str]  # of the path, the query and the headers: name -> place
    input_schema: Mapping[str, Any]

    @property
    def is_reading(self) -> bool:
        """Whether the operation changes nothing."""
        return self.method == READING

    def request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of :class:`werkzeug.test.EnvironBuilder`.

        Raises ValueError for an argument that the operation does not have, or a missing part of the
        path. Everything else is checked by the API.
        """
        known = self.input_schema["properties"]
        if unknown := sorted(set(arguments) - set(known)):
            raise ValueError(f"{self.name} has no argument {', '.join(unknown)}.")
        sent: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
        for name, value in arguments.items():
            if name in self.parameters and value is not None:
                sent[self.parameters[name]][name] = _text(value)
        names = [name for name, place in self.parameters.items() if place == "path"]
        if missing := [name for name in names if not sent["path"].get(name)]:
            raise ValueError(f"{self.name} needs {', '.join(missing)}.")
        path = {name: quote(value, safe="") for name, value in sent["path"].items()}
        body = {"json": arguments["body"]} if "body" in arguments else {}
        return {
            "path": self.path.format(**path),
            "method": self.method.upper(),
            "query_string": sent["query"],
            "headers": sent["header"],
            **body,
        }


def operations(app: Flask) -> list[Operation]:
    """The operations of the service's own OpenAPI document, in its order."""
    document = Client(app).get("/openapi.json").get_json()
    schemas = document["components"]["schemas"]
    return [
        _operation(path, method, item, schemas)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item and _is_offered(item[method])
    ]


def _is_offered(operation: Mapping[str, Any]) -> bool:
    """Whether it takes a credential of the service, and all its bodies are JSON."""
    bodies = (operation.get("requestBody", {}), operation["responses"].get("200", {}))
    return "x-permission" in operation and all(
        "application/json" in body.get("content", {"application/json": {}}) for body in bodies
    )


def _operation(
    path: str, method: str, item: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Operation:
    found = item[method]
    places: dict[str, str] = {}
    properties: dict[str, Any] = {}
    required = []
    for parameter in (*item.get("parameters", ()), *found.get("parameters", ())):
        name, place = parameter["name"], parameter["in"]
        if place == "header" and name not in SENT_HEADERS:
            continue
        places[name] = place
        properties[name] = {
            **parameter.get("schema", {}),
            "description": parameter.get("description", ""),
        }
        if parameter.get("required"):
            required.append(name)
    if "requestBody" in found:
        properties["body"] = found["requestBody"]["content"]["application/json"]["schema"]
        if found["requestBody"].get("required"):
            required.append("body")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if names := _referenced(properties, schemas, set()):
        schema["$defs"] = {name: _local(schemas[name]) for name in sorted(names)}
    return Operation(
        name=found["operationId"],
        method=method,
        path=path,
        tags=tuple(found.get("tags", ())),
        description="\n\n".join(
            text for name in ("summary", "description") if (text := found.get(name))
        ),
        parameters=places,
        input_schema=_local(schema),
    )


def _referenced(value: Any, schemas: Mapping[str, Any], seen: set[str]) -> set[str]:
    """The names of the schemas that ``value`` refers to, directly or through others."""
    for reference in _references(value):
        if reference not in seen:
            seen.add(reference)
            _referenced(schemas[reference], schemas, seen)
    return seen


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(REFERENCE)
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _local(value: Any) -> Any:
    """A copy whose references point into the tool's own ``$defs``."""
    if isinstance(value, dict):
        return {
            name: part.replace(REFERENCE, "#/$defs/")
            if name == "$ref" and isinstance(part, str)
            else _local(part)
            for name, part in value.items()
        }
    return [_local(part) for part in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    """A parameter as HTTP sends it; a list stays one, because it is repeated."""
    if isinstance(value, list):
        return [_text(part) for part in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
