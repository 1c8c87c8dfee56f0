"""An example for every body in the OpenAPI document, built from the examples of its fields."""

from __future__ import annotations

from typing import Any

PLAIN: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
FORMATS = {
    "uuid": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ada@example.com",
}


def add_examples(document: dict[str, Any]) -> None:
    """Add a valid example to each JSON body of ``document`` that has a schema and no example."""
    described = {**document.get("paths", {}), **document.get("webhooks", {})}
    for operations in described.values():
        for operation in operations.values():
            if not isinstance(operation, dict):
                continue
            bodies = [operation.get("requestBody", {}), *operation.get("responses", {}).values()]
            for body in bodies:
                for content in body.get("content", {}).values():
                    if "schema" in content and not {"example", "examples"} & content.keys():
                        content["example"] = example_of(content["schema"], document)


def example_of(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """A value that ``schema`` accepts."""
    while "$ref" in schema and "examples" not in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for key in ("example", "const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("anyOf", "allOf"):
        if schema.get(key):
            return example_of(schema[key][0], document)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object" and "properties" in schema:
        return {name: example_of(part, document) for name, part in schema["properties"].items()}
    if kind == "array" and "items" in schema:
        return [example_of(schema["items"], document)]
    return FORMATS.get(schema.get("format", ""), PLAIN.get(str(kind)))
