"""docs/reference/errors.md: every code of an error answer."""

from __future__ import annotations

from itertools import groupby

from app.core.json_text import Json
from app.dev.reference.markdown import page

INTRODUCTION = """\
The body of an error is `{"detail": "sentence"}`. Where the status alone is ambiguous, it also has a `code` for programs. Codes never change; sentences may. `/docs` lists the codes of each operation. A 422 has [a list of errors](../concepts/requests.md#errors) instead. OFREP's endpoints have OFREP's own errors (`errorCode` and `errorDetails`), and SCIM's endpoints have [SCIM's](../guides/scim.md#protocol)."""


def render(document: dict[str, Json]) -> str:
    """The page, with a list of codes for each status."""
    found = {
        code
        for operations in document["paths"].values()
        for method, operation in operations.items()
        if method != "parameters"
        for code in codes(operation)
    }
    parts: list[str] = []
    for status, listed in groupby(sorted(found), key=lambda one: one[0]):
        lines = [
            f"- {', '.join(f'`{code}`' for _, code, _ in same)}: {detail}"
            for detail, same in groupby(listed, key=lambda one: one[2])
        ]
        parts += [f"## {status}", "\n".join(lines)]
    return page("Error codes", INTRODUCTION, *parts)


def codes(operation: dict[str, Json]) -> list[tuple[str, str, str]]:
    """Status, code and sentence of each error with a code that an operation can answer."""
    found = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json", {})
        listed = content.get("schema", {}).get("properties", {}).get("code", {}).get("enum", ())
        found += [(status, code, content["examples"][code]["value"]["detail"]) for code in listed]
    return found
