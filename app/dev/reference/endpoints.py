"""docs/reference/endpoints.md: every operation of the OpenAPI document."""

from __future__ import annotations

from typing import Any

from app.dev.reference.markdown import page, table

INTRODUCTION = """\
The service's own documentation at `/docs` shows each endpoint with its parameters, bodies and examples. `/openapi.json` is the OpenAPI 3.1 document. [Requests and answers](../concepts/requests.md) has what all endpoints share. "Include" are the names that `include=` takes; `/docs` says which permission each needs.

SCIM has its own endpoints below `/scim/v2`: see [SCIM](../guides/scim.md). The console's pages are below `/console`."""
PERMISSIONS = """\
[Credentials](../concepts/credentials.md) explains permissions. Only platform credentials have `webhooks:*` and `platform:superadmin`. `usage:write` also belongs to a tenant's API key if a platform credential created it. A tenant's credential can change a subscription's billing address, contact, delivery preferences and `auto_renew`, and record a cancellation. Only platform credentials can change the provider's fields."""

ABBREVIATIONS = {"api": "API", "ofrep": "OFREP", "scim": "SCIM"}


def render(document: dict[str, Any]) -> str:
    """The page, with a table for each tag in the document's order."""
    by_tag: dict[str, list[tuple[str, ...]]] = {}
    for tag, *cells in rows(document):
        by_tag.setdefault(tag, []).append(tuple(cells))
    header = ("Method", "Path", "Permission", "What it does")
    parts = [text for tag, found in by_tag.items() for text in (title(tag), table(header, found))]
    return page("Endpoints", INTRODUCTION, PERMISSIONS, *parts)


def rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Tag, method, path, permission and summary of each operation."""
    return [
        (
            operation["tags"][0],
            method.upper(),
            f"`{path}`",
            f"`{operation['x-permission']}`" if "x-permission" in operation else "public",
            operation["summary"].rstrip(".") + _includes(operation),
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    ]


def _includes(operation: dict[str, Any]) -> str:
    """The names that `include=` takes, if the operation has it."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] == "include":
            names = parameter["schema"]["items"]["enum"]
            return f". Include: {', '.join(f'`{name}`' for name in names)}"
    return ""


def title(tag: str) -> str:
    """A tag as a heading."""
    first, *others = tag.split("_")
    return " ".join(["##", ABBREVIATIONS.get(first, first.capitalize()), *others])
