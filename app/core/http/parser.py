"""The arguments of a view: reads a request and refuses it as FastAPI does.

A 422 lists the errors of all sources: the query's first, then the headers', then the body's. If a
query parameter is repeated, the last value counts. Below /v1 unknown query parameters are refused,
except by an endpoint that ``ignores_unknown_query``. A body is parsed as JSON only if its
Content-Type is JSON.
"""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

import marshmallow as ma
from flask import Request

from app.core.errors import BadRequest, Entry, Invalid, error
from app.core.http.includes import PARAMETER
from app.core.validation.messages import MAX_ENTRIES, refused, under
from app.core.validation.scalars import is_storable
from app.core.validation.schemas import Schema

if TYPE_CHECKING:
    from app.core.http.endpoint import Endpoint

Source: TypeAlias = tuple[str, Schema]  # the location, and what is loaded from it

MAX_DEPTH = 128
"""JSON nested deeper than this is answered with 400, as FastAPI answers an unreadable body."""

MAX_CONTAINERS = 20_000
"""JSON with more arrays and objects that are not empty is answered with 400 too."""

UNREADABLE = "There was an error parsing the body"
NO_PARAMETERS = Schema()

_PREFIXES = {"query": "query", "headers": "header", "json": "body"}  # in the order of the answer
_CONTAINERS = frozenset({dict, list})
_NO_BODY = object()


def query_values(request: Request) -> dict[str, str]:
    """The query as FastAPI reads it: of repeated parameters the last one counts."""
    return dict(parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True))


def read_query(endpoint: Endpoint, request: Request) -> dict[str, str]:
    """The query parameters. Raises Invalid if there are any and the endpoint takes none."""
    if not request.query_string:
        return {}
    values = query_values(request)
    if _refuses_unknown(endpoint, request) and all(at != "query" for at, _ in endpoint.arguments):
        try:
            NO_PARAMETERS.load(_own(endpoint, values))
        except Invalid as fault:
            raise Invalid(*under("query", fault.errors)) from None
    return values


def read(endpoint: Endpoint, request: Request, query: dict[str, str]) -> list[Any]:
    """The arguments of the view, one for each of the endpoint's sources.

    Raises Invalid with the errors of all sources or, if there are none, those of ``Schema.rules``.
    """
    if not endpoint.arguments:
        return []
    unknown = ma.RAISE if _refuses_unknown(endpoint, request) else ma.EXCLUDE
    query = _own(endpoint, query)
    values: list[Any] = []
    refusals: dict[str, list[Entry]] = {}
    for location, schema in endpoint.arguments:
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
        for (_, schema), loaded in zip(endpoint.arguments, values, strict=True):
            found += schema.rules(loaded)
    if found:
        raise Invalid(*found[:MAX_ENTRIES])
    return values


def _refuses_unknown(endpoint: Endpoint, request: Request) -> bool:
    return request.path.startswith("/v1/") and not endpoint.ignores_unknown_query


def _own(endpoint: Endpoint, query: dict[str, str]) -> dict[str, str]:
    """The query without ``include``, where :mod:`app.core.http.includes` reads it."""
    if not endpoint.includes or PARAMETER not in query:
        return query
    return {name: value for name, value in query.items() if name != PARAMETER}


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
    """The entry with FastAPI's details: a missing parameter's input is null, headers are lower case."""
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
