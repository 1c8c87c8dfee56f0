"""Makes the answer from the value that a view returns: ``{"data": …}`` with an ``ETag``.

A view returns a row, a :class:`Page`, ``(row, headers)``, the JSON of an answer without a schema, a
complete ``Response``, or None for an answer without a body. The ``ETag`` is the row's version. It is a digest of the body with
``?include=``, and for a GET of something without a version. A page has no ``ETag``.
``If-None-Match`` is compared weakly (RFC 9110 §13.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Response
from flask_smorest.utils import unpack_tuple_response

from app.core import json_text
from app.core.db.pages import MAX_BYTES, Page
from app.core.http.includes import Include
from app.core.http.request import Request
from app.core.validation.schemas import Schema

MAX_LIST_ENVELOPE = 100  # bytes around the rows of a list


@dataclass(frozen=True, eq=False)
class Answer:
    """How an operation answers. ``shown_once`` names secrets, which are not stored for replays."""

    status: int
    schema: Schema | None
    shown_once: tuple[str, ...] = ()
    includes: tuple[Include, ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether the operation answers several rows."""
        return self.schema is not None and bool(self.schema.many)


def write(answer: Answer | None, returned: Any, request: Request) -> Response:
    """Make the response from the value that the view has returned."""
    result, status, headers = unpack_tuple_response(returned)
    if isinstance(result, Response):
        return result
    status = status or (answer.status if answer else 200)
    if answer is None or answer.schema is None:
        if result is None:
            return Response(status=status, headers=headers)
        body = json_text.dumps(result)
        return Response(body, status, headers, content_type="application/json")
    response = Response(status=status, content_type="application/json", headers=headers)
    if isinstance(result, Page):
        response.data = _list(result, answer.schema, request)
        return response
    has_version = hasattr(result, "version") and not request.includes
    if has_version:
        response.set_etag(str(result.version))
        if _is_known(request, response):
            return response
    if status == 201:
        response.headers.setdefault("Location", f"{request.path}/{result.id}")
    data = answer.schema.dump(result)
    for include in request.includes:
        include.add_to(*((data, result) if answer.schema.many else ([data], [result])))
    response.data = json_text.dumps({"data": data})
    if not has_version and (request.method == "GET" or request.includes):
        response.add_etag()
        if _is_known(request, response):
            response.data = b""
    if answer.shown_once:
        repeatable = {name: value for name, value in data.items() if name not in answer.shown_once}
        request.repeatable_body = json_text.dumps({"data": repeatable})
    return response


def _is_known(request: Request, response: Response) -> bool:
    """Whether ``If-None-Match`` of a GET names the answer's ETag. If so, set the status to 304."""
    if request.method != "GET" or "If-None-Match" not in request.headers:
        return False
    tag, _ = response.get_etag()
    is_known = tag is not None and request.if_none_match.contains_weak(tag)
    if is_known:
        response.status_code = 304
    return is_known


def _list(page: Page, schema: Schema, request: Request) -> bytes:
    """The JSON of a page. Rows beyond MAX_BYTES are left out; ``next_cursor`` leads to them."""
    left = MAX_BYTES - MAX_LIST_ENVELOPE
    items: list[bytes] = []
    dumped = schema.dump(page.items)
    for include in request.includes:
        include.add_to(dumped, page.items)
    for item in dumped:
        text = json_text.dumps(item)
        left -= len(text) + 1
        if left < 0 and items and page.name:
            break
        items.append(text)
    cursor = json_text.dumps(page.first(len(items)).next_cursor)
    return b'{"data":[%b],"next_cursor":%b}' % (b",".join(items), cursor)
