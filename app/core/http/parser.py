"""The request parser behind ``@blp.arguments``: reads and answers as FastAPI does.

A 422 lists the errors of all sources: the query's first, then the headers', then the body's. The
last of repeated query parameters counts; unknown ones are ignored. A body is parsed as JSON only if
its Content-Type is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

import marshmallow as ma
from flask import Request, request

from app.core.errors import BadRequest, Entry, Invalid, error
from app.core.validation.messages import MAX_ENTRIES, refused, under
from app.core.validation.scalars import is_storable
from app.core.validation.schemas import Schema

View = Callable[..., Any]

MAX_DEPTH = 128
"""JSON nested deeper than this is answered with 400, as FastAPI answers an unreadable body."""

UNREADABLE = "There was an error parsing the body"

_PREFIXES = {"query": "query", "headers": "header", "json": "body"}  # in the order of the answer
_NO_BODY = object()
_READING = "app.reading"


class RequestParser:
    """The part of webargs' Parser that flask-smorest uses."""

    DEFAULT_VALIDATION_STATUS = 422

    def use_args(
        self, argmap: Schema | type[Schema], *, location: str = "json", **_: Any
    ) -> Callable[[View], View]:
        """Append what ``argmap`` loads from ``location`` to the view's positional arguments.

        Stacked decorators share one answer: the innermost raises the errors of all of them.
        """
        schema = argmap() if isinstance(argmap, type) else argmap

        def decorate(view: View) -> View:
            innermost = not getattr(view, "reads_request", False)

            @wraps(view)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                reading = request.environ.setdefault(_READING, _Reading())
                values = reading.take(schema, location, request)
                if innermost:
                    del request.environ[_READING]
                    reading.finish()
                return view(*args, values, **kwargs)

            wrapper.reads_request = True  # type: ignore[attr-defined]
            return wrapper

        return decorate


PARSER = RequestParser()


@dataclass
class _Reading:
    """The values and errors of the sources of one request that were read so far."""

    loaded: list[tuple[Schema, Any]] = field(default_factory=list)
    refused: dict[str, list[Entry]] = field(default_factory=dict)

    def take(self, schema: Schema, location: str, request: Request) -> Any:
        """What ``schema`` loads from ``location``; on errors None, and they are recorded."""
        body = _body(request) if location == "json" else None  # its faults end the request
        try:
            if location != "json":
                values = _load_parameters(schema, location, request)
            elif body is _NO_BODY:
                raise Invalid(refused("missing", (), None))
            else:
                values = schema.load(body)
        except Invalid as fault:
            self.refused[location] = under(_PREFIXES[location], fault.errors)
            return None
        self.loaded.append((schema, values))
        return values

    def finish(self) -> None:
        """Raise Invalid with the recorded errors or, if there are none, those of ``Schema.rules``."""
        found = [entry for place in _PREFIXES for entry in self.refused.get(place, ())]
        if not found:
            found = [entry for schema, values in self.loaded for entry in schema.rules(values)]
        if found:
            raise Invalid(*found[:MAX_ENTRIES])


def query_values(source: Request) -> dict[str, str]:
    """The query as FastAPI reads it: the last of repeated parameters, ``;`` is no separator."""
    return dict(parse_qsl(source.query_string.decode("latin-1"), keep_blank_values=True))


def _load_parameters(schema: Schema, location: str, request: Request) -> Any:
    if location == "query":
        named = query_values(request)
    else:
        names = [field.data_key or name for name, field in schema.load_fields.items()]
        named = {name: request.headers[name] for name in names if name in request.headers}
    unknown = ma.INCLUDE if schema.unknown == ma.INCLUDE else ma.EXCLUDE
    try:
        values = schema.load(named, unknown=unknown)
    except Invalid as fault:
        raise Invalid(*(_of_parameter(entry, location) for entry in fault.errors)) from None
    found = [
        refused("string_unicode", (name,), value)
        for name, value in named.items()
        if not is_storable(name + value)
    ]
    if found:
        raise Invalid(*found)
    return values


def _of_parameter(entry: Entry, location: str) -> Entry:
    """The input of a missing parameter is null; the names of headers are in lower case."""
    loc = [str(part).lower() for part in entry["loc"]] if location == "headers" else entry["loc"]
    return {**entry, "loc": loc, "input": None if entry["type"] == "missing" else entry["input"]}


def _body(source: Request) -> Any:
    """The parsed body; its text, which no schema accepts, if the Content-Type is not JSON.

    Raises Invalid for a syntax error, and BadRequest for a body of another encoding or too deep.
    """
    raw = source.get_data()
    if not raw:
        return _NO_BODY
    if not _is_json(source.headers.get("Content-Type", "")):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as fault:
        loc, context = ("body", fault.pos), {"error": fault.msg}
        raise Invalid(error(loc, "json_invalid", "JSON decode error", {}, context)) from None
    except (ValueError, RecursionError):
        raise BadRequest(UNREADABLE) from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _is_too_deep(body):
        raise BadRequest(UNREADABLE)
    return body


def _is_json(content_type: str) -> bool:
    main, _, sub = content_type.partition(";")[0].strip().lower().partition("/")
    if main != "application" or "/" in sub:
        return False
    return sub == "json" or sub.endswith("+json")


def _is_too_deep(body: Any) -> bool:
    level = [body] if isinstance(body, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
