"""The request parser behind ``@blp.arguments``: reads and answers as FastAPI does.

All the sources of one operation (``location="query"``, ``"headers"``, ``"json"``) are judged in
one answer: query first, then headers, then the body. The last of repeated query parameters counts,
unknown ones are ignored, and the body is JSON only if the Content-Type says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

import marshmallow as ma
from flask import Request, request

from app.core.errors import BadRequest, Invalid
from app.core.validation.messages import MAX_REFUSALS, Refusal, refusal, refusals
from app.core.validation.scalars import is_storable
from app.core.validation.schemas import Schema

View = Callable[..., Any]

MAX_DEPTH = 128
"""JSON nested deeper than this is 400, as FastAPI answers what it cannot parse."""

_PREFIXES = {"query": "query", "headers": "header", "json": "body"}  # in the order of the answer
_NO_BODY = object()
_READING = "app.reading"


class RequestParser:
    """What flask-smorest asks of a webargs parser, without webargs' own reading of requests."""

    DEFAULT_VALIDATION_STATUS = 422

    def use_args(
        self, argmap: Schema | type[Schema], *, location: str = "json", **_: Any
    ) -> Callable[[View], View]:
        """Append what ``argmap`` loads from ``location`` to the view's positional arguments.

        Stacked decorators share one answer: the innermost raises what all of them found.
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
    """What the sources of one request gave so far."""

    loaded: list[tuple[Schema, Any]] = field(default_factory=list)
    refused: dict[str, list[Refusal]] = field(default_factory=dict)

    def take(self, schema: Schema, location: str, request: Request) -> Any:
        """What ``schema`` loads from the ``location`` in ``request``; None, and a note, where it refuses."""
        try:
            values = _load(schema, location, request)
        except ma.ValidationError as error:
            prefix = _PREFIXES[location]
            self.refused[location] = [one.under(prefix) for one in refusals(error, None)]
            return None
        self.loaded.append((schema, values))
        return values

    def finish(self) -> None:
        """Raise what was refused; only where nothing was, look at the rules across fields."""
        found = [one.entry() for place in _PREFIXES for one in self.refused.get(place, ())]
        if not found:
            found = [error for schema, values in self.loaded for error in schema.rules(values)]
        if found:
            raise Invalid(*found[:MAX_REFUSALS])


def query_values(source: Request) -> dict[str, str]:
    """The query as FastAPI reads it: of a repeated parameter the last, ``;`` separates nothing."""
    return dict(parse_qsl(source.query_string.decode("latin-1"), keep_blank_values=True))


def _load(schema: Schema, location: str, request: Request) -> Any:
    if location != "json":
        return _load_parameters(schema, location, request)
    body = _body(request)
    if body is _NO_BODY:
        raise ma.ValidationError([refusal("missing", None)])
    return schema.load(body)


def _load_parameters(schema: Schema, location: str, request: Request) -> Any:
    named = query_values(request) if location == "query" else _headers(schema, request)
    found: list[Refusal] = []
    try:
        values = schema.load(
            named, unknown=ma.INCLUDE if schema.unknown == ma.INCLUDE else ma.EXCLUDE
        )
    except ma.ValidationError as error:
        found += [_of_parameter(one, location) for one in refusals(error, None)]
    else:
        found += _unstorable(named)
    if found:
        raise ma.ValidationError(found)
    return values


def _unstorable(named: dict[str, str]) -> Iterator[Refusal]:
    for name, value in named.items():
        if not is_storable(name) or not is_storable(value):
            yield refusal("string_unicode", value).under(name)


def _headers(schema: Schema, source: Request) -> dict[str, str]:
    names = [loaded.data_key or name for name, loaded in schema.load_fields.items()]
    return {name: source.headers[name] for name in names if name in source.headers}


def _of_parameter(one: Refusal, location: str) -> Refusal:
    """A missing parameter shows no enclosing object; header names are shown in lower case."""
    loc = tuple(str(part).lower() for part in one.loc) if location == "headers" else one.loc
    return replace(one, loc=loc, value=None if one.type == "missing" else one.value)


def _body(source: Request) -> Any:
    """The parsed body; its text where the Content-Type is not JSON, which no schema accepts."""
    raw = source.get_data()
    if not raw:
        return _NO_BODY
    if not _is_json(source.headers.get("Content-Type", "")):
        return _text(raw)
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as fault:
        syntax = refusal("json_invalid", {}, error=fault.msg).under("body", fault.pos)
        raise Invalid(syntax.entry()) from None
    except (ValueError, RecursionError):
        raise _unreadable() from None
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _is_too_deep(body):
        raise _unreadable()
    return body


def _is_json(content_type: str) -> bool:
    main, _, sub = content_type.partition(";")[0].strip().lower().partition("/")
    if main != "application" or "/" in sub:
        return False
    return sub == "json" or sub.endswith("+json")


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _unreadable() -> BadRequest:
    return BadRequest("There was an error parsing the body")


def _is_too_deep(body: Any) -> bool:
    level = [body]
    for _ in range(MAX_DEPTH):
        level = [
            child for node in level for child in _children(node) if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node
