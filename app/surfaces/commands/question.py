"""The question before a command that destroys something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..operations import Operation, Send
from .answers import leave_out_refused, missing_row, succeeded
from .refusals import Refused
from .text import printable

LABELS = (
    "email",
    "address",
    "slug",
    "name",
    "field_key",
    "flag_key",
    "url",
    "bp_subscription_id",
    "id",
)
"""What a question calls a row: the first of these fields that it has."""


def shown_by(operation: Operation, known: list[Operation]) -> Operation | None:
    """The operation that shows the row which the path of ``operation`` names, or lists only it."""
    path = operation.path[: operation.path.rfind("}") + 1]
    listed, _, name = path.rstrip("}").rpartition("/{")
    reading = {one.path: one for one in known if one.is_reading}
    lists = listed in reading and name in reading[listed].names_in("query")
    return reading.get(path) or (reading[listed] if lists else None)


def read_row(
    shown: Operation | None, values: Mapping[str, Any], send: Send, *, named: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The row that ``shown`` reads; empty if there is no such operation.

    ``named`` has the values as they were written. Raises Refused if the row is missing.
    """
    if shown is None:
        return {}
    known = {*shown.names_in("query")} if shown.is_list else {"tenant_id"}
    chosen = known & {*shown.names_in("query")} & values.keys()
    place = {name: values[name] for name in (*shown.names_in("path"), *chosen)}
    if include := [name for name in ("tenant", "user") if name in shown.includes]:
        place["include"] = include
    answer = send(shown.request(place))
    while leave_out_refused(shown, place, answer):
        answer = send(shown.request(place))
    data = succeeded(answer, missing=missing_row(shown, named, answer)).body["data"]
    if data == []:
        raise Refused(f"There is no {printable(' '.join(map(str, named.values())))}.")
    return dict(data[0] if shown.is_list else data)


def question_about(
    told: str, operation: Operation, values: Mapping[str, Any], row: Mapping[str, Any], more: str
) -> str:
    """The question whether to do what is ``told``, with the name of the row and ``more``."""
    row = {**(row.get("user") or {}), **row}
    known = [str(row[name]) for name in LABELS if row.get(name) is not None]
    path = " ".join(str(values[name]) for name in operation.names_in("path"))
    label, of = known[0] if known else path, ""
    tenant = row.get("tenant")
    if isinstance(tenant, dict) and tenant["slug"] != label:
        of = f" of {tenant['slug']}"
    return f"{told}: {label}{of}{more}?"


def counted(preview: Mapping[str, Any]) -> str:
    """How many rows of each kind a preview would change, in words."""
    from .output import text_of

    least = "" if preview["is_complete"] else "at least "
    return f"{least}{text_of(preview['counts'] or 'no changes')}"
