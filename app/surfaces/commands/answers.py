"""The API's answers: the notes and errors that commands print about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import click

from ..operations import Answer, Operation, Request, Send
from .names import ABBREVIATIONS
from .parameters import MOMENTS, OPTIONS, is_id
from .refusals import Refused, WrongArguments, reason
from .text import printable

NOT_FOUND = "Not Found"
NOTES = {
    "X-Plan-Unknown": "No preset is named {}, so this plan has no effect yet.",
    "X-Update-Ignored": "Ignored: a newer update has been applied.",
}
"""What a header of a success means."""
LISTED = ("connection_id", "endpoint_id", "event_id", "field_id", "import_id", "key_id")
"""What only an id names, which the ``list`` of the group shows."""
HINTS = {
    "plan preset of this name": "plan",
    "role of this key": "role",
    "no role can have this": "permission",
}
"""The kind of the row that is missing, by the reason of a refusal."""


def get(send: Send, path: str, query: Mapping[str, str] | None = None, *, missing: str = "") -> Any:
    """The ``data`` of a GET; raises Refused as :func:`succeeded`."""
    return succeeded(send(Request("GET", path, query or {}, {})), missing=missing).body["data"]


def succeeded(
    answer: Answer,
    *,
    labels: Mapping[str, str] = MappingProxyType({}),
    missing: str = "",
    nearest: Callable[[str, str], str] = lambda kind, name: "",
) -> Answer:
    """The answer of a success; raises Refused for any other.

    ``labels`` has the command's names of arguments. ``missing`` is the sentence for a 404 that only
    says "Not Found"; ``nearest`` asks whether another name of a kind was meant.
    """
    if answer.status < 400:
        for name, text in NOTES.items():
            if value := answer.headers.get(name):
                click.echo(text.format(printable(unquote(value))), err=True)
        return answer
    body = answer.body
    detail = body.get("detail") if isinstance(body, dict) else body
    if isinstance(detail, list):
        if all(entry["type"] == "missing" and len(entry["loc"]) == 2 for entry in detail):
            absent = ", ".join(_place(entry["loc"], labels) for entry in detail)
            raise WrongArguments(f"Missing {absent}.", body)
        raise WrongArguments("; ".join(_fault(entry, labels, nearest) for entry in detail), body)
    if answer.status == 404 and missing and detail in (NOT_FOUND, None):
        detail = missing
        body = {**(body or {}), "detail": missing}
    raise Refused(str(detail or f"The service answered {answer.status}."), body)


def leave_out_refused(operation: Operation, values: dict[str, Any], answer: Answer) -> bool:
    """Whether ``values`` had includes whose permission a refusal names; it has them no more."""
    if answer.status != 403 or not values.get("include"):
        return False
    told = next(one.description for one in operation.arguments if one.name == "include")
    needed = dict(re.findall(r"`(\w+)` needs `(.+?)`", told))
    refused = [name for name in values["include"] if f" {needed.get(name)}." in str(answer.body)]
    values["include"] = [name for name in values["include"] if name not in refused] or None
    return bool(refused)


def missing_row(operation: Operation, values: Mapping[str, Any], answer: Answer) -> str:
    """The sentence for a 404: which row is missing (``There is no webhook event 17.``)."""
    code = answer.body.get("code", "") if isinstance(answer.body, dict) else ""
    kind = code.removesuffix("_not_found")
    for name in (f"{kind}_id", kind, *reversed(operation.names_in("path"))):
        if name in values:
            own, value = name.removesuffix("_id"), values[name]
            value = "/".join(value.values()) if isinstance(value, dict) else value
            is_part = kind and name in OPTIONS and not kind.endswith(own)
            words = [ABBREVIATIONS.get(word, word) for word in (kind or own).split("_")]
            named = f"of {own} {value}" if is_part else str(value)
            told = f"no {' '.join(words)} {printable(named)}"
            if values.keys() & {*MOMENTS} & {*operation.names_in("query")}:
                return f"There was {told} then."
            return f"There is {told}{where_listed(name, named)}."
    return ""


def where_listed(name: str, value: str) -> str:
    """Which command lists the ids of rows that only an id names; empty if ``value`` is an id."""
    if name == "role":  # its key
        return found_with("roles list")
    if name not in LISTED or is_id(value):
        return ""
    group = click.get_current_context().command_path.rpartition(" ")[0]
    return f"; give its id ({group} list)"


def found_with(words: str) -> str:
    """The end of a sentence about a wrong name: the command that shows the right ones."""
    return f"; find it with {program()} {words}"


def program() -> str:
    """The name of the program: ``flask`` or ``controlplane``."""
    return str(click.get_current_context().find_root().info_name)


def _fault(
    entry: Mapping[str, Any], labels: Mapping[str, str], nearest: Callable[[str, str], str]
) -> str:
    """What is wrong, and where, with the command's names of arguments such as ``user_id``."""
    told = reason(entry)
    if told.startswith("give "):  # some of several options
        return re.sub(r"\w+", lambda found: labels.get(found[0], found[0]), f"G{told[1:]}.")
    told = re.sub(r"\w+_id\b", lambda found: labels.get(found[0], found[0]), told)
    for kind in (HINTS[words] for words in HINTS if words in told):
        near = nearest(kind, str(entry["input"]))
        told += found_with(f"{kind}s list") + (near and f".{near}")
    return f"{_place(entry['loc'], labels)}: {told}"


def _place(loc: list[Any], labels: Mapping[str, str]) -> str:
    """The place of a fault in the words of the command: ``--email``, or ``JSON.team``.

    The item of a repeated option has the place of the option, because the reason names the value.
    """
    _, *inner = map(str, loc[:-1] if isinstance(loc[-1], int) else loc)
    if not inner:
        return "--body"
    return ".".join([labels.get(inner[0], inner[0]), *inner[1:]])
