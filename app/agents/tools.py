"""Tools made from the OpenAPI document: one for each operation with JSON or no body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from flask import Flask

from app.surfaces.in_process import operations
from app.surfaces.operations import JSON, REFERENCE, Operation, Request

SENT_HEADERS = ("If-Match", "Idempotency-Key")  # which an agent may set


def tools(app: Flask) -> dict[str, Operation]:
    """The operations that take a credential of the service, and JSON or no body, by name."""
    return {
        one.name: one
        for one in operations(app)
        if one.permission and one.media_type in (None, JSON) and one.answers_json
    }


def request_of(operation: Operation, arguments: Mapping[str, Any]) -> Request:
    """The request that a tool's arguments make; ValueError as :meth:`Operation.request`."""
    known = input_schema(operation)["properties"]
    if unknown := sorted(set(arguments) - set(known)):
        raise ValueError(f"{operation.name} has no argument {', '.join(unknown)}.")
    parameters = {name: value for name, value in arguments.items() if name != "body"}
    return operation.request(parameters, arguments.get("body"))


def description(operation: Operation) -> str:
    """The operation's summary and description."""
    texts = (operation.about.get(name) for name in ("summary", "description"))
    return "\n\n".join(filter(None, texts))


def input_schema(operation: Operation) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, which refers to nothing outside itself."""
    properties: dict[str, Any] = {}
    required = []
    for parameter in operation.parameters:
        name = parameter["name"]
        if parameter["in"] == "header" and name not in SENT_HEADERS:
            continue
        told = parameter.get("description", "")
        properties[name] = {**parameter.get("schema", {}), "description": told}
        if parameter.get("required"):
            required.append(name)
    if operation.body_schema is not None:
        properties["body"] = operation.body_schema
        if operation.needs_body:
            required.append("body")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if names := _referenced(properties, operation.schemas):
        schema["$defs"] = {name: operation.schemas[name] for name in sorted(names)}
    local: dict[str, Any] = json.loads(
        json.dumps(schema).replace(f'"$ref": "{REFERENCE}', '"$ref": "#/$defs/')
    )
    return local


def _referenced(value: Any, schemas: Mapping[str, Any]) -> set[str]:
    """The names of the schemas that ``value`` refers to, directly or through others."""
    found: set[str] = set()
    while names := set(re.findall(rf'"\$ref": "{REFERENCE}(\w+)"', json.dumps(value))) - found:
        found |= names
        value = [schemas[name] for name in names]
    return found
