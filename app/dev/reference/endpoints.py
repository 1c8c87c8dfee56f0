"""docs/reference/endpoints.md: every operation of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence

from app.dev.reference.markdown import page, table
from app.surfaces.operations import Operation

INTRODUCTION = """\
The service's own documentation at `/docs` shows each endpoint with its parameters, bodies and examples. `/openapi.json` is the OpenAPI 3.1 document. [Requests and answers](../concepts/requests.md) has what all endpoints share. "Include" are the names that `include=` takes; `/docs` says which permission each needs.

SCIM has its own endpoints below `/scim/v2`: see [SCIM](../guides/scim.md). The console's pages are below `/console`."""
PERMISSIONS = """\
[Credentials](../concepts/credentials.md) explains permissions. Only platform credentials have `webhooks:*` and `platform:superadmin`. `usage:write` also belongs to a tenant's API key if a platform credential created it. A tenant's credential can change a subscription's billing address, contact, delivery preferences and `auto_renew`, and record a cancellation. Only platform credentials can change the provider's fields."""

ABBREVIATIONS = {"api": "API", "ofrep": "OFREP", "scim": "SCIM"}


def render(operations: Sequence[Operation]) -> str:
    """The page, with a table for each tag in the document's order."""
    by_tag: dict[str, list[tuple[str, ...]]] = {}
    for one in operations:
        by_tag.setdefault(one.group, []).append(row_of(one))
    header = ("Method", "Path", "Permission", "What it does")
    parts = [text for tag, found in by_tag.items() for text in (title(tag), table(header, found))]
    return page("Endpoints", INTRODUCTION, PERMISSIONS, *parts)


def row_of(operation: Operation) -> tuple[str, ...]:
    """Method, path, permission and summary of an operation."""
    permission = f"`{operation.permission}`" if operation.permission else "public"
    told = operation.summary
    if operation.includes:
        told += f". Include: {', '.join(f'`{name}`' for name in operation.includes)}"
    return operation.method.upper(), f"`{operation.path}`", permission, told


def title(tag: str) -> str:
    """A tag as a heading."""
    first, *others = tag.split("_")
    return " ".join(["##", ABBREVIATIONS.get(first, first.capitalize()), *others])
