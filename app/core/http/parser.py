"""The request parser behind ``@blp.arguments``: reads and answers as FastAPI does.

A 422 lists the errors of all sources: the query's first, then the headers', then the body's. If a
query parameter is repeated, the last value counts. Below /v1 unknown query parameters are refused,
except by views with :func:`ignores_unknown_query`. A body is parsed as JSON only if its
Content-Type is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from itertools import chain, islice
from typing import Any
from urllib.parse import parse_qsl

import marshmallow as ma
from flask import Request, request

from app.core.errors import BadRequest, Entry, Invalid, error
from app.core.http.includes import PARAMETER, offered_by
from app.core.validation.messages import MAX_ENTRIES, refused, under
from app.core.validation.scalars import is_storable
from app.core.validation.schemas import Schema

View = Callable[..., Any]
Source = tuple[str, Schema]  # the location, and what is loaded from it

MAX_DEPTH = 128
"""JSON nested deeper than this is answered with 400, as FastAPI answers an unreadable body."""

MAX_CONTAINERS = 20_000
"""JSON with more arrays and objects that are not empty is answered with 400 too."""

UNREADABLE = "There was an error parsing the body"
NO_PARAMETERS = Schema()

_PREFIXES = {"query": "query", "headers": "header", "json": "body"}  # in the order of the answer
_CONTAINERS = frozenset({dict, list})
_NO_BODY = object()


class RequestParser:
    """The part of webargs' Parser that flask-smorest uses."""

    DEFAULT_VALIDATION_STATUS = 422

    def use_args(self, schema: Schema | type[Schema], *, location: str) -> Callable[[View], View]:
        """Append what ``schema`` loads from ``location`` to the view's positional arguments.

        The decorators of one view share a list of sources. The innermost one loads all of them, so
        that a 422 has the errors of every source.
        """
        source = (location, schema() if isinstance(schema, type) else schema)

        def decorate(view: View) -> View:
            if hasattr(view, "sources"):
                view.sources.insert(0, source)
                return view
            sources = [source]

            @wraps(view)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                unknown = ma.RAISE if refuses_unknown_query(view, request) else ma.EXCLUDE
                return view(*args, *_read(sources, request, own_query(view), unknown), **kwargs)

            wrapper.sources = sources  # type: ignore[attr-defined]
            return wrapper

        return decorate


def ignores_unknown_query(view: View) -> View:
    """Let a view below /v1 ignore query parameters that it does not have, as FastAPI does.

    It is the innermost decorator.
    """
    view.ignores_unknown_query = True  # type: ignore[attr-defined]
    return view


def refuses_unknown_query(view: View, request: Request) -> bool:
    """Whether the request's unknown query parameters are refused."""
    return request.path.startswith("/v1/") and not hasattr(view, "ignores_unknown_query")


def check_has_no_query(view: View, request: Request) -> None:
    """Raise Invalid for query parameters where the view takes none."""
    if not request.query_string or not refuses_unknown_query(view, request):
        return
    if all(location != "query" for location, _ in getattr(view, "sources", ())):
        try:
            NO_PARAMETERS.load(own_query(view))
        except Invalid as fault:
            raise Invalid(*under("query", fault.errors)) from None


def query_values(request: Request) -> dict[str, str]:
    """As FastAPI reads the query: the last of repeated parameters counts, ``;`` is no separator."""
    return dict(parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True))


def own_query(view: View) -> dict[str, str]:
    """The query without what the Blueprint reads itself (:mod:`app.core.http.includes`)."""
    values = query_values(request)
    if offered_by(view):
        values.pop(PARAMETER, None)
    return values


def _read(
    sources: list[Source], request: Request, query: dict[str, str], unknown: str
) -> list[Any]:
    """The values of the sources; ``unknown`` is for query parameters.

    Raises Invalid with the errors of all sources or, if there are none, those of ``Schema.rules``.
    """
    values: list[Any] = []
    refusals: dict[str, list[Entry]] = {}
    for location, schema in sources:
        body = _body(request) if location == "json" else None  # its faults end the request
        try:
            if location != "json":
                values.append(_load_parameters(schema, location, request, query, unknown))
            elif body is _NO_BODY and schema.needs_body:
                raise Invalid(refused("missing", (), None))
            else:
                values.append(schema.load({} if body is _NO_BODY else body))
        except Invalid as fault:
            refusals[location] = under(_PREFIXES[location], fault.errors)
    found: list[Entry] = []
    if refusals:
        for location in _PREFIXES:
            found += refusals.get(location, ())
    else:
        for (_, schema), loaded in zip(sources, values, strict=True):
            found += schema.rules(loaded)
    if found:
        raise Invalid(*found[:MAX_ENTRIES])
    return values


def _load_parameters(
    schema: Schema, location: str, request: Request, query: dict[str, str], unknown: str
) -> Any:
    if location == "query":
        named = query
    else:
        sent = request.headers
        named = {name: sent[name] for name in schema.inputs if name in sent}
    try:
        values = schema.load(named, unknown=unknown)
    except Invalid as fault:
        raise Invalid(*(_of_parameter(entry, location) for entry in fault.errors)) from None
    unstorable = (one for one in named.items() if not is_storable("".join(one)))
    found = [refused("string_unicode", (name,), v) for name, v in islice(unstorable, MAX_ENTRIES)]
    if found:
        raise Invalid(*found)
    return values


def _of_parameter(entry: Entry, location: str) -> Entry:
    """The input of a missing parameter is null; the names of headers are in lower case."""
    loc = [str(part).lower() for part in entry["loc"]] if location == "headers" else entry["loc"]
    return {**entry, "loc": loc, "input": None if entry["type"] == "missing" else entry["input"]}


def _body(request: Request) -> Any:
    """The parsed JSON body. Without a JSON Content-Type it is the text, which every schema refuses."""
    raw = request.get_data()
    if not raw:
        return _NO_BODY
    if not _is_json(request.headers.get("Content-Type", "")):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    return parse_json(raw)


def parse_json(raw: bytes) -> Any:
    """The JSON value, as a request's body is parsed.

    Raises Invalid for a syntax error. Raises BadRequest for bytes that cannot be decoded, for an
    integer with too many digits, for nesting deeper than :data:`MAX_DEPTH`, and for more than
    :data:`MAX_CONTAINERS` arrays and objects that are not empty.
    """
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as fault:
        loc, context = ("body", fault.pos), {"error": fault.msg}
        raise Invalid(error(loc, "json_invalid", "JSON decode error", {}, context)) from None
    except (ValueError, RecursionError):
        raise BadRequest(UNREADABLE) from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _is_too_complex(body):
        raise BadRequest(UNREADABLE)
    return body


def _is_json(content_type: str) -> bool:
    main, _, sub = content_type.partition(";")[0].strip().lower().partition("/")
    if main != "application" or "/" in sub:
        return False
    return sub == "json" or sub.endswith("+json")


def _is_too_complex(body: Any) -> bool:
    level, count = [body], 0
    for _ in range(MAX_DEPTH):
        level = [node for node in level if type(node) in _CONTAINERS and node]
        count += len(level)
        if not level or count > MAX_CONTAINERS:
            return count > MAX_CONTAINERS
        parts = (node.values() if type(node) is dict else node for node in level)
        level = [*chain.from_iterable(parts)]
    return any(type(node) in _CONTAINERS for node in level)
