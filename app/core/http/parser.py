"""Reads the arguments of a view from a request, and refuses wrong ones as FastAPI does.

A 422 lists the errors in the query, then those in the headers, then those in the body. If a
query parameter is repeated, the last value counts. Below /v1 unknown query parameters are refused,
except by an endpoint that ``is_of_contract``. A body is parsed as JSON only if its
Content-Type is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import flask
import marshmallow as ma

from app.core.errors import BadRequest, Entry, Invalid, error
from app.core.http import includes
from app.core.http.request import Request
from app.core.validation.messages import MAX_ENTRIES, refused, under
from app.core.validation.scalars import is_storable
from app.core.validation.schemas import Schema

if TYPE_CHECKING:
    from app.core.http.endpoint import Endpoint

MAX_DEPTH = 128
"""JSON with a deeper nesting is answered with 400, as FastAPI answers an unreadable body."""

MAX_CONTAINERS = 20_000
"""JSON with more arrays and objects, not counting empty ones, is answered with 400 too."""

UNREADABLE = "There was an error parsing the body"

NO_PARAMETERS = Schema()
_PREFIXES = {"query": "query", "headers": "header", "json": "body"}
_SOURCES = ("query", "header", "body")  # in the order of the answer
_CONTAINERS = frozenset({dict, list})
_NO_BODY = object()


class Argument(NamedTuple):
    """An argument of a view: ``schema`` loads it from ``location`` (json, query or headers)."""

    location: str
    schema: Schema


def read(endpoint: Endpoint, request: Request) -> list[Any]:
    """The values of ``endpoint.arguments``, in their order; sets ``request.includes``.

    Raises Invalid with the errors of query, headers and body together. If there are none,
    ``Schema.rules`` is checked. Three errors are reported alone: a wrong ``?include=``, a query
    parameter of an endpoint that takes none, and a body that is not valid JSON.
    """
    is_strict = request.path.startswith("/v1/") and not endpoint.is_of_contract
    unknown = ma.RAISE if is_strict else ma.EXCLUDE
    query = _query(endpoint, request, unknown) if request.query_string else {}
    body = _body(request) if "json" in endpoint.locations else None  # raises at once
    values: list[Any] = []
    found: list[Entry] = []
    for argument in endpoint.arguments:
        location, schema = argument
        try:
            if location != "json":
                given = query
                if location == "headers":
                    sent = request.headers
                    given = {name: sent[name] for name in schema.inputs if name in sent}
                values.append(_load_parameters(argument, given, unknown))
            elif body is _NO_BODY and schema.needs_body:
                raise Invalid(refused("missing", (), None))
            else:
                values.append(schema.load({} if body is _NO_BODY else body))
        except Invalid as fault:
            found += under(_PREFIXES[location], fault.errors)
    found.sort(key=lambda entry: _SOURCES.index(entry["loc"][0]))
    if not found:
        for argument, loaded in zip(endpoint.arguments, values, strict=True):
            found += argument.schema.rules(loaded)
    if found:
        raise Invalid(*found[:MAX_ENTRIES])
    return values


def query_values(request: flask.Request) -> dict[str, str]:
    """The query as FastAPI reads it: the last value of a repeated parameter counts."""
    return dict(parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True))


def _query(endpoint: Endpoint, request: Request, unknown: str) -> dict[str, str]:
    """The query's parameters except ``include``, whose includes are stored in the request."""
    query = query_values(request)
    asked = query.pop(includes.PARAMETER, None) if endpoint.includes else None
    if endpoint.has_past:
        query.pop("as_of", None)
    if "query" not in endpoint.locations:
        try:
            NO_PARAMETERS.load(query, unknown=unknown)
        except Invalid as fault:
            raise Invalid(*under("query", fault.errors)) from None
    if asked is not None:
        request.includes = includes.choose(endpoint, asked)
    return query


def _load_parameters(argument: Argument, given: Mapping[str, str], unknown: str) -> Any:
    """Load query parameters or headers. Errors look like FastAPI's.

    The ``input`` of a missing parameter is null, and names of headers are in lower case.
    """
    try:
        values = argument.schema.load(given, unknown=unknown)
    except Invalid as fault:
        for entry in fault.errors:
            if argument.location == "headers":
                entry["loc"] = [str(part).lower() for part in entry["loc"]]
            if entry["type"] == "missing":
                entry["input"] = None
        raise
    found = []
    for name, value in given.items():
        if not is_storable(name + value):
            found.append(refused("string_unicode", (name,), value))
    if found:
        raise Invalid(*found)
    return values


def _body(request: Request) -> Any:
    """The parsed JSON body. With another Content-Type it is a text, which every schema refuses."""
    raw = request.get_data()
    if not raw:
        return _NO_BODY
    if request.is_json:
        return parse_json(raw)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def parse_json(raw: bytes) -> Any:
    """Parse JSON in the way in which a request's body is parsed.

    Raises Invalid for a syntax error. Raises BadRequest for bytes that cannot be decoded, for an
    integer with more than 4,300 digits, for nesting deeper than :data:`MAX_DEPTH`, and for more
    than :data:`MAX_CONTAINERS` arrays and objects that are not empty.
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
