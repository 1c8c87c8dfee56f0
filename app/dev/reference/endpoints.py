"""docs/reference/endpoints.md: every operation of the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.dev.reference.markdown import page
from app.surfaces.operations import Operation

INTRODUCTION = """\
The running service documents each endpoint at `/docs`, with its parameters, bodies, examples and the names that `include=` takes. `/openapi.json` is the OpenAPI 3.1 document. [Requests and answers](../concepts/requests.md) has what all endpoints share, [Credentials](../concepts/credentials.md) explains the permissions. [SCIM](../guides/scim.md) has its own endpoints below `/scim/v2`."""

ABBREVIATIONS = {"api": "API", "ofrep": "OFREP", "scim": "SCIM"}


def render(operations: Sequence[Operation]) -> str:
    """The page, with a list for each tag in the document's order."""
    by_tag: dict[str, list[str]] = {}
    for one in operations:
        by_tag.setdefault(one.group, []).append(line_of(one))
    parts = [text for tag, found in by_tag.items() for text in (title(tag), "\n".join(found))]
    return page("Endpoints", INTRODUCTION, *parts)


def line_of(operation: Operation) -> str:
    """Method and path, permission, and the first clause of the summary."""
    permission = f"`{operation.permission}`" if operation.permission else "public"
    summary = re.split(r"[;:,] | \(", operation.summary)[0]
    return f"- `{operation.method.upper()} {operation.path}` ({permission}) {summary}"


def title(tag: str) -> str:
    """A tag as a heading."""
    first, *others = tag.split("_")
    return " ".join(["##", ABBREVIATIONS.get(first, first.capitalize()), *others])
