"""docs/reference/errors.md: every code of an error answer."""

from __future__ import annotations

from collections import defaultdict

from app.core.json_text import Json
from app.dev.reference.markdown import page, table

INTRODUCTION = """\
The body of an error is `{"detail": "sentence"}`. Where the status alone is ambiguous, it also has a `code` for programs. Codes never change; sentences may. A 422 has FastAPI's body instead, a list of errors with their places: see [Requests and answers](../concepts/requests.md#errors)."""
OTHERS = """\
OFREP's endpoints have OFREP's own errors (`errorCode` and `errorDetails`), and SCIM's endpoints have [SCIM's](../guides/scim.md#protocol)."""
MANY = 6  # operations that the table lists


def render(document: dict[str, Json]) -> str:
    """The page, with the codes by status."""
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, code, detail in codes(operation) if method != "parameters" else ():
                places[status, code, detail].append(f"`{method.upper()} {path}`")
    found = [
        (status, f"`{code}`", detail, answered_by(where))
        for (status, code, detail), where in sorted(places.items())
    ]
    header = ("Status", "Code", "Sentence", "Answered by")
    return page("Error codes", INTRODUCTION, OTHERS, table(header, found))


def codes(operation: dict[str, Json]) -> list[tuple[str, str, str]]:
    """Status, code and sentence of each error with a code that an operation can answer."""
    found = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json", {})
        listed = content.get("schema", {}).get("properties", {}).get("code", {}).get("enum", ())
        found += [(status, code, content["examples"][code]["value"]["detail"]) for code in listed]
    return found


def answered_by(operations: list[str]) -> str:
    """The operations, or their number if they are many."""
    return "<br>".join(operations) if len(operations) <= MANY else f"{len(operations)} endpoints"
