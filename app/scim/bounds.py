"""The bounds of one request, checked before `scim2-models` reads it.

The library takes about 0.1 ms for each object and wrong value, and 0.3 ms for each path. Without
bounds a body of 1 MiB takes minutes and more than 1 GB of memory.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

from werkzeug.datastructures import Headers

from app.connections.activity import QUOTED
from app.core.validation.scalars import CONTROL
from app.scim.errors import ScimError, invalid_value

MAX_EXPRESSION = 4096  # characters of a filter or a path
MAX_COMPARISONS = 25  # of a filter or a path; each takes 1 to 2 ms to translate
COMPARISON = re.compile(r"\b(?:eq|ne|co|sw|ew|gt|ge|lt|le|pr)\b", re.IGNORECASE)
MAX_TAGS = 256  # characters of If-Match, If-None-Match and ``version``; a long one is slow to parse
MAX_VALUES = 60_000  # of a body; 10,000 members with four values each have fewer
MAX_NAMES = 200  # of an object
MAX_ENTRIES = 100  # of a list, and of ``attributes``
MAX_OPERATIONS = 1_000  # of a PATCH as it is sent, and of a bulk request before its own limit
LONG_LISTS = {"members": 10_000, "value": 10_000, "operations": MAX_OPERATIONS}
MAX_PATHS = 2_000  # of the operations of a request
MAX_VISITS = 60_000  # of members and entries, in one request; each takes about 0.1 ms
MAX_NAME = 1000  # characters of a user name, an external id or a group's name
MAX_BYTES = 2048  # of the same; an entry of a B-tree index has at most 2,704
LISTED = {"attributes", "excludedattributes"}  # also as one text, with commas


_visits: ContextVar[int] = ContextVar("scim_visits")


def begin_visits() -> None:
    """Count what :func:`count_visits` is told, from 0, for a new request."""
    _visits.set(0)


def count_visits(entries: int) -> None:
    """Count members of groups, or entries of a user's lists, that the request goes through.

    Each counts once for each comparison. A failed operation of a bulk request counts too.
    Raises ScimError for more than :data:`MAX_VISITS`.
    """
    _visits.set(_visits.get() + entries)
    if _visits.get() > MAX_VISITS:
        detail = "The request goes through too many entries of lists; send fewer operations."
        raise ScimError(413, detail)


def check_body(body: object) -> None:
    """Raise ScimError for a body, or a query's parameters, that would take long to read."""
    values = paths = 0
    waiting: list[tuple[str, object]] = [("", body)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            _check_text(name, value)
            continue
        if not isinstance(value, dict | list):
            continue
        values += len(value)
        if isinstance(value, dict):
            _check_number(len(value), MAX_NAMES, "An object has", "attributes")
            children = [(key.lower(), one) for key, one in value.items()]
            paths += sum(key == "path" for key, _ in children)
            if name == "value":  # of an operation; the keys can be paths
                paths += len(value)
                for key in value:
                    check_expression(key)
        else:
            if name == "operations" and len(value) > MAX_OPERATIONS:
                raise ScimError(413, f"A request has at most {MAX_OPERATIONS} operations.")
            most = LONG_LISTS.get(name, MAX_ENTRIES)
            _check_number(len(value), most, f"{name or 'A list'} has", "entries")
            children = [("", one) for one in value]
        _check_number(values, MAX_VALUES, "A request has", "values")
        _check_number(paths, MAX_PATHS, "A request has", "paths")
        waiting += children


def check_tags(headers: Headers) -> None:
    """Raise ScimError for conditions that would take long to read."""
    for name in ("If-Match", "If-None-Match"):
        _check_number(len(headers.get(name, "")), MAX_TAGS, f"{name} has", "characters")


def check_expression(text: str) -> None:
    """Raise ScimError for a filter or a path that would take long to parse."""
    is_long = len(text) > MAX_EXPRESSION
    if is_long or count_comparisons(text) > MAX_COMPARISONS:
        most = f"{MAX_EXPRESSION} characters" if is_long else f"{MAX_COMPARISONS} comparisons"
        raise ScimError(400, f"A filter or path has at most {most}.", scim_type="invalidFilter")


def count_comparisons(text: str) -> int:
    return len(COMPARISON.findall(QUOTED.sub("", text)))


def check_names(**texts: str) -> None:
    """Raise ScimError for a text that is too long for an index, or has a control character."""
    for name, text in texts.items():
        check_controls(name, text)
        if len(text) > MAX_NAME or len(text.encode()) > MAX_BYTES:
            raise invalid_value(f"{name} has at most {MAX_NAME} characters and {MAX_BYTES} bytes.")


def check_controls(name: str, value: object) -> None:
    """Raise ScimError for a control character in any text of an attribute's value."""
    if isinstance(value, str) and CONTROL.search(value):
        raise invalid_value(f"{name} must not have control characters.")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            check_controls(name, part)


def _check_text(name: str, text: str) -> None:
    if name in ("filter", "path"):
        check_expression(text)
    elif name == "version":
        _check_number(len(text), MAX_TAGS, "version has", "characters")
    elif name in LISTED:
        _check_number(text.count(",") + 1, MAX_ENTRIES, f"{name} has", "entries")


def _check_number(number: int, most: int, what: str, of: str) -> None:
    if number > most:
        raise invalid_value(f"{what} at most {most} {of}.")
