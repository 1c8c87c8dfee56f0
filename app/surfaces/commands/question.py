"""The question before a command that destroys something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..operations import Operation, Send
from .answers import missing_row, succeeded
from .refusals import ask

LABELS = ("email", "slug", "name", "field_key", "flag_key", "url", "id")
"""What a question calls a row: the first of these fields that it has."""


def shown_by(operation: Operation, known: list[Operation]) -> Operation | None:
    """The operation that shows the row which the path of ``operation`` names."""
    path = operation.path[: operation.path.rfind("}") + 1]
    return next((one for one in known if one.is_reading and one.path == path), None)


def ask_about(
    operation: Operation, shown: Operation | None, place: Mapping[str, Any], send: Send
) -> None:
    """Ask whether to go on, with the name of the row that ``shown`` reads.

    ``place`` has the values of the path. Raises Refused if the row is missing.
    """
    label, of = ", ".join(map(str, place.values())), ""
    if shown is not None:
        include = {"include": "tenant"} if "tenant" in shown.includes else {}
        answer = send(shown.request({**place, **include}))
        row = succeeded(answer, missing=missing_row(shown, place)).body["data"]
        label = next(str(row[name]) for name in LABELS if row.get(name) is not None)
        tenant = row.get("tenant")
        if isinstance(tenant, dict) and tenant["slug"] != label:
            of = f" of {tenant['slug']}"
    ask(f"{operation.summary.partition(';')[0]}: {label}{of}?", yes=False)
